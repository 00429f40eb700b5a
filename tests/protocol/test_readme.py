"""README.md's first look, as a new user types it."""
import pathlib
import re

README = (pathlib.Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def lanes(text):
    """The lanes of a timeline in text: queue and class."""
    return re.findall(r"^(\S+ queue \d+ \w+) *▕", text, re.M)


def labels(text):
    """What the table below a timeline names."""
    return set(re.findall(r"^(\w+) +\[\d+\]", text, re.M))


def test_the_first_look_runs_and_ends_in_the_timeline_that_is_printed(fresh):
    blocks = re.findall(r"```python\n(.*?)```", README, re.S)
    assert len(blocks) >= 3 and blocks[-1].startswith("%%events\n")
    for code in blocks:
        run = fresh.run(code, timeout=60)
        assert run.status == "ok", run.reply
    (drawn,) = [text for text in (one["data"]["text/plain"] for one in run.of("display_data")) if "▕" in text]
    printed = README.split(blocks[-1])[1]
    assert lanes(printed) and set(lanes(printed)) <= set(lanes(drawn)), drawn
    assert labels(printed) and labels(printed) <= labels(drawn), drawn
