"""The golden file of sentences has no case whose test is gone."""

from tests.fixtures.sentences import TESTS, golden_sentences


def test_every_case_has_its_test() -> None:
    cases = golden_sentences()
    assert cases
    for case in cases:
        file, _, test = case.partition("::")
        name = test.partition("[")[0].partition(" ")[0].rpartition("::")[2]
        assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8"), case
