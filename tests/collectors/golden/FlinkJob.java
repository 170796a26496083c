import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/** A job with a Kafka source: bootstrap servers, REST port, checkpoint interval in ms (0 is none), ms per record,
 *  whether it commits to Kafka, the record at which it fails (-1 is none), topic, group. */
public class FlinkJob {
    static long msPerRecord;
    static int failsAt;

    public static void main(String[] arguments) throws Exception {
        msPerRecord = Long.parseLong(arguments[3]);
        failsAt = Integer.parseInt(arguments[5]);
        Configuration settings = new Configuration();
        settings.setString("rest.port", arguments[1]);
        settings.setString("rest.bind-address", "127.0.0.1");
        settings.setString("rest.address", "127.0.0.1");
        settings.setString("metrics.fetcher.update-interval", "500");
        settings.setString("web.refresh-interval", "500");
        settings.setString("taskmanager.memory.network.min", "64mb");
        settings.setString("taskmanager.memory.network.max", "64mb");
        settings.setString("taskmanager.numberOfTaskSlots", "3");
        settings.setString("restart-strategy.type", "fixed-delay");
        settings.setString("restart-strategy.fixed-delay.attempts", "1000");
        settings.setString("restart-strategy.fixed-delay.delay", "600 s");
        StreamExecutionEnvironment job = StreamExecutionEnvironment.createLocalEnvironmentWithWebUI(settings);
        job.setParallelism(2);
        if (Long.parseLong(arguments[2]) > 0) job.enableCheckpointing(Long.parseLong(arguments[2]));
        KafkaSource<String> source = KafkaSource.<String>builder()
            .setBootstrapServers(arguments[0]).setTopics(arguments[6]).setGroupId(arguments[7])
            .setStartingOffsets(OffsetsInitializer.earliest()).setValueOnlyDeserializer(new SimpleStringSchema())
            .setProperty("commit.offsets.on.checkpoint", arguments[4]).build();
        job.fromSource(source, WatermarkStrategy.noWatermarks(), "kafka-orders")
            .map(value -> {
                if (Integer.parseInt(value) == failsAt) throw new IllegalStateException("record " + value);
                Thread.sleep(msPerRecord);
                return value;
            }).returns(String.class).name("price").disableChaining().sinkTo(new DiscardingSink<>());
        job.execute("orders-job");
    }
}
