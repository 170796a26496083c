"""What Spark needs for a lake in S3, or in what speaks its protocol, from the options that delta-rs has.

Hadoop's client (S3A) calls the same things by other names. Clients of other stores are configured with
``analysis.spark.conf``.
"""

from collections.abc import Mapping

#: Of the Hadoop that pyspark brings. It comes with all of Amazon's SDK: half a gigabyte, fetched once.
HADOOP_AWS_PACKAGE = "org.apache.hadoop:hadoop-aws:3.5.0"
_SCHEMES = ("s3://", "s3a://")
_S3A = "fs.s3a."
#: By delta-rs's names, which are known in capitals and not, and with and without ``aws_``.
_CALLED = {
    "access_key_id": "access.key",
    "secret_access_key": "secret.key",
    "session_token": "session.token",
    "token": "session.token",
    "region": "endpoint.region",
    "default_region": "endpoint.region",
    "endpoint": "endpoint",
    "endpoint_url": "endpoint",
}


def packages_for(lake_uri: str) -> tuple[str, ...]:
    """The Maven coordinates of the store's client; none where Spark has it, or it is for the settings to name."""
    return (HADOOP_AWS_PACKAGE,) if lake_uri.startswith(_SCHEMES) else ()


def conf_for(lake_uri: str, options: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's settings for the store: keys, token, region, endpoint. What is not given (as a role of the machine) S3A
    finds by itself, and other options of delta-rs are not carried over.

    They hold secrets: Spark's own settings would stand on the command line of its JVM for everybody to read.
    """
    if not lake_uri.startswith(_SCHEMES):
        return {}
    given = {key.lower().removeprefix("aws_"): value for key, value in options.items()}
    conf = {_S3A + called: given[name] for name, called in _CALLED.items() if name in given}
    conf["fs.s3.impl"] = "org.apache.hadoop.fs.s3a.S3AFileSystem"
    if _S3A + "session.token" in conf:
        conf[_S3A + "aws.credentials.provider"] = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
    if _S3A + "endpoint" in conf:
        # A store of one's own has its buckets in the path, as delta-rs takes for granted, too.
        hosted = given.get("virtual_hosted_style_request", "false").lower() == "true"
        conf[_S3A + "path.style.access"] = "false" if hosted else "true"
    return conf
