"""YAML files: aliases are written out, but not to gigabytes."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress
from typing import Any

import hypothesis
import pytest
import yaml
from hypothesis import strategies as st

from muster.objects import yaml_files
from muster.objects.memory import DataLimit, TooMuchDataError, memory_of
from tests.support import cpu


def a_bomb(levels: int, width: int = 9) -> str:
    """Aliases of aliases: `width` to the power of `levels` values in a few hundred bytes."""
    lines = ["v0: &v0 lol"]
    lines += [f"v{n}: &v{n} [{', '.join([f'*v{n - 1}'] * width)}]" for n in range(1, levels)]
    return "\n".join(lines)


def a_bomb_of_merges(levels: int, width: int = 9) -> str:
    """Mappings that merge the one before `width` times."""
    lines = ["v0: &v0 {a: lol}"]
    lines += [f"v{n}: &v{n} {{<<: [{', '.join([f'*v{n - 1}'] * width)}]}}" for n in range(1, levels)]
    return "\n".join(lines)


def test_aliases_are_written_out() -> None:
    """As `kubectl apply` does."""
    assert yaml_files.load("a: &a [1, 2]\nb: *a\nc: {<<: {d: *a}}") == {
        "a": [1, 2],
        "b": [1, 2],
        "c": {"d": [1, 2]},
    }
    assert yaml_files.load(a_bomb(4))["v3"][8][8][8] == "lol"


@pytest.mark.parametrize(
    "text",
    [
        a_bomb(12),
        f"""a: &a [{'"", ' * 1000}]\nb: &b [{"*a, " * 1000}]\nc: [{"*b, " * 300}]""",
        f"a: &a {'x' * 20_000}\nb: [{'*a, ' * 20_000}]",
        f"a: &a {'x' * 20_000}\nb: [{'*a, ' * 1_000}]\n{'#' * 2_000_000}",
        "a: &a [*a]",
        "&a {b: *a}",
        a_bomb_of_merges(12),
    ],
)
def test_aliases_that_stand_for_gigabytes_are_refused(text: str) -> None:
    """In a document and in a stream, without the memory for it."""
    tracemalloc.start()
    for load in (yaml_files.load, yaml_files.load_all):
        with pytest.raises(yaml.YAMLError, match="aliases"):
            load(text)
    assert tracemalloc.get_traced_memory()[1] < 20 * 1024 * 1024
    tracemalloc.stop()


@pytest.mark.parametrize(
    "text", ["[" * 50_000, "{a: " * 50_000, "- " * 50_000, "? " * 50_000, "[" * 101 + "]" * 101]
)
@pytest.mark.parametrize(
    "before", ["", "\ufeff", "# CR\r", "# NEL\x85", "# LS\u2028", "# PS\u2029"], ids=ascii
)
def test_deep_nesting_is_refused(text: str, before: str) -> None:
    """The C parser would end the process; whatever ends the line before it, and in all encodings of YAML."""
    text = before + text
    for given in (text, text.encode(), text.encode("utf-16")):
        for load in (yaml_files.load, yaml_files.load_all):
            with pytest.raises(yaml.YAMLError, match="nested more than 100 levels"):
                load(given)


def test_many_brackets_are_no_depth() -> None:
    """A hundred levels may be used."""
    deep: Any = None
    for _ in range(100):
        deep = [deep]
    assert yaml_files.load(str(deep).replace("None", "null")) == deep
    assert yaml_files.load("[[], {}]\n" + "#" + "[" * 1000) == [[], {}]
    assert yaml_files.load("a: |\n  " + "-" * 200) == {"a": "-" * 200}


@pytest.mark.parametrize(
    "text",
    [
        "!!binary aGk=",
        ".nan",
        ".inf",
        "1.0e+400",
        "!!set {a}",
        "!!omap [a: 1]",
        "!!timestamp 2026-11-23",
        "9" * 30,
        "1" + ":00" * 130,
    ],
)
def test_what_json_cannot_hold_is_refused(text: str) -> None:
    """An API server would never have it."""
    with pytest.raises(yaml.YAMLError, match="JSON"):
        yaml_files.load(text)


TAGS = [
    "bool",
    "int",
    "float",
    "null",
    "str",
    "seq",
    "map",
    "merge",
    "value",
    "binary",
    "set",
    "python/tuple",
]
BEFORE = ("", "? ", "- ", "a: ")


@hypothesis.given(
    st.sampled_from(TAGS),
    st.sampled_from(BEFORE),
    st.text("x-+.:0=1e_~'\"[]{}, ", max_size=8),
)
@hypothesis.example("bool", "", "x")
@hypothesis.example("bool", "", "{=: x}")
@hypothesis.example("int", "", "''")
@hypothesis.example("int", "", "-")
@hypothesis.example("float", "? ", "''")
def test_any_tag_is_read_or_refused(tag: str, before: str, text: str) -> None:
    """PyYAML raises KeyError and IndexError for some texts with a tag."""
    with suppress(yaml.YAMLError):
        yaml_files.load_all(f"{before}!!{tag} {text}")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("begin", "entry", "end"),
    [
        pytest.param("{", "a,", "}", id="keys without a value"),
        pytest.param("[", "a,", "]", id="entries of a list"),
        pytest.param("", "- a\n", "", id="entries in lines"),
        pytest.param("", "--- a\n", "", id="documents"),
    ],
)
def test_values_of_a_few_characters_each_are_counted(
    begin: str, entry: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before data are made of them, which would take 400 bytes each."""
    monkeypatch.setattr(yaml_files, "MOST_NODES", 10_000)
    text = begin + entry * 40_000 + end
    tracemalloc.start()
    for given in (text, text.encode()):
        with pytest.raises(yaml.YAMLError, match=r"more than \d+ (keys and values|bytes of memory)"):
            yaml_files.load_all(given, DataLimit(640_000))
    assert tracemalloc.get_traced_memory()[1] < 2 * 1024 * 1024
    tracemalloc.stop()


def test_no_character_stands_for_more_than_two_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter texts than half of MOST_NODES are not counted."""
    for text in ("{a,a,a}", "[{},{}]", "[a: b,a: b]", "[a: ,a: ]", "{[],[]}", "--- \n--- \n"):
        events = yaml.parse(text, yaml_files.SafeLoader)
        assert sum(isinstance(event, yaml.NodeEvent) for event in events) <= 2 * len(text)
    monkeypatch.setattr(yaml_files, "MOST_NODES", 10)
    assert yaml_files.load("[1,2]") == [1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "1" + ":00" * 134,
        "1" + ":00" * 134 + ".0",
        "9" * 401,
        "-1" + "_" * 400,
        "1." + "0" * 400,
        "0b" + "1" * 400,
    ],
)
def test_long_numbers_are_never_made(text: str) -> None:
    """A number of base 60 takes quadratic time; without a tag the text is a string."""
    for load in (yaml_files.load, lambda stream: yaml_files.load_all(stream)[0]):
        assert load(f"a: {text}") == {"a": text}
        with pytest.raises(yaml.YAMLError, match="characters, at most 400 are read"):
            load(f"a: !!int {text}")


@pytest.mark.parametrize("text", ["1:" * 200_000 + "1", "1" * 400_000])
def test_patterns_of_numbers_never_see_a_long_text(text: str) -> None:
    """They take 60 bytes for each character of the first one: 2 GiB for a file of 32 MiB."""
    tracemalloc.start()
    assert yaml_files.load_all(f"a: {text}") == [{"a": text}]
    assert tracemalloc.get_traced_memory()[1] < 10 * len(text)
    tracemalloc.stop()


@pytest.mark.thorough
def test_no_line_is_searched_again_from_each_character() -> None:
    """A file of lines of 99 dashes took 13 s, in which the line of a command on a terminal stood still."""
    text = ("-" * 99 + "x") * 100_000
    with cpu.at_most(0.3):
        assert not yaml_files._INDENTED.search(text)


def test_numbers_of_usual_length_are_read() -> None:
    """Of base 60 too, as YAML 1.1 has them."""
    assert yaml_files.load("[1:30, 1.5e+300, 18446744073709551615]") == [90, 1.5e300, 2**64 - 1]


def test_many_merges_of_one_mapping_are_refused() -> None:
    """PyYAML takes quadratic time for them."""
    assert yaml_files.load("{" + "<<: {a: 1}, " * 100 + "}") == {"a": 1}
    with pytest.raises(yaml.YAMLError, match="more than 100 merges"):
        yaml_files.load("{" + "<<: {a: 1}, " * 101 + "}")


PLAIN = [
    "a: 1\nb: [true, No, null, ~, 1.5, .5, 0x1f, 1:30, '1', \"x\\n\", 2026-11-24, é, =x]\nc: {d: , e: {}}\n",
    "--- \n---\na\n---\n[]\n...\n",
    '{"a": {"1": [{}, [], "\\u00e9", -1, 1e3, 1.0e+3]}, "b": ""}',
    "a: |\n  b\n  c\nd: >-\n  e\n  f\na: again\n",
]
OTHER = [
    "a: &x 1\nb: *x\n",
    "{<<: {a: 1}, b: 2}",
    "a: !!str 1\n",
    "1: a\ntrue: b\n",
    "? [a]\n: b\n",
    "a: =\n",
]


@pytest.mark.parametrize("text", [*PLAIN, *OTHER])
def test_long_texts_have_the_data_of_short_ones(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data of plain ones are made without the nodes of PyYAML."""
    short = _loaded(text)
    monkeypatch.setattr(yaml_files, "MOST_NODES", 20)
    assert repr(_loaded(text)) == repr(short)


@pytest.mark.parametrize("text", PLAIN)
def test_plain_texts_need_no_nodes(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that they may have eight times as many keys and values."""
    monkeypatch.setattr(yaml_files, "MOST_NODES", 1)
    assert yaml_files.load_all(text)


def _loaded(text: str) -> object:
    try:
        return yaml_files.load_all(text)
    except yaml.YAMLError as error:
        return type(error), getattr(error, "problem", str(error))


@pytest.mark.thorough
def test_a_value_of_a_long_text_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand Jobs of JobSets have four million keys and values."""
    monkeypatch.setattr(yaml_files, "MOST_NODES", 1_000)
    text = "[" + "{a: b}," * 10_000 + "[]," * 10_000 + "]"
    tracemalloc.start()
    yaml_files.load_all(text)
    assert tracemalloc.get_traced_memory()[1] < 5 * 1024 * 1024
    tracemalloc.stop()


DENSE = {
    "mappings": "{a},",
    "pairs": "{a: b},",
    "lists": "[],",
    "lists of lists": "[[]],",
    "entries of lists": "[a],",
    "empty mappings": "{},",
    "strings": "aa,",
    "numbers": "300,",
    "keys": "{k%d},",
    "keys with an emoji": "{\U0001f600%d: \U0001f600aaaaaaaaaaaaaaaaaaaa%d},",
}


@pytest.mark.thorough
@pytest.mark.parametrize("entry", DENSE.values(), ids=DENSE)
@pytest.mark.parametrize("most_nodes", [2, 10**9], ids=["by events", "by nodes"])
def test_data_take_no_more_memory_than_is_counted(
    entry: str, most_nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the shape: a mapping takes eight times as much as a number."""
    monkeypatch.setattr(yaml_files, "MOST_NODES", most_nodes)
    text = "[" + "".join(entry.replace("%d", str(number)) for number in range(2_000)) + "]"
    yaml_files.load_all(text)  # the types of plain scalars are kept
    limit = DataLimit(10**9)
    tracemalloc.start()
    data = yaml_files.load_all(text, limit)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken <= 10**9 - limit.left + 100_000
    assert 10**9 - limit.left <= 3 * taken
    assert 10**9 - limit.left <= memory_of(data) + 1_000_000


@pytest.mark.parametrize(
    ("most_nodes", "most"), [(1, 250_000), (10_000, 950_000)], ids=["by events", "by nodes"]
)
def test_several_texts_share_one_limit(most_nodes: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten files within a limit of their own would be gigabytes; nodes need 800 bytes each for a while."""
    monkeypatch.setattr(yaml_files, "MOST_NODES", most_nodes)
    text = "[" + "[]," * 1000 + "]"
    limit = DataLimit(most)
    yaml_files.load_all(text, limit)
    yaml_files.load_all(text, limit)
    with pytest.raises(TooMuchDataError, match=f"more than {most} bytes of memory"):
        yaml_files.load_all(text, limit)


def test_lines_of_documents_and_of_items() -> None:
    """Empty documents have none, nor have items that an alias brings; of two `items` the last count."""
    text = "---\n--- null\n# c\n--- {a: b}\n---\nitems:\n- a: [1]\n- b\nitems:\n- {c: {items: [d]}}\n- e\n"
    text += "---\nb: &b [1, 2]\nitems: *b\n"
    assert list(yaml_files.lines_of_documents(text)) == [(4, []), (6, [10, 11]), (13, [])]


@pytest.mark.parametrize(
    "before", ["", "\ufeff", "# CR\r", "# NEL\x85", "# LS\u2028", "---\n...\n"], ids=ascii
)
def test_tag_directives_are_refused(before: str) -> None:
    """190 KB of text gave each tag a prefix of 100 KB, and so took a gigabyte; many take quadratic time."""
    text = f"{before}%TAG !e! tag:{'a' * 1000}\n---\n[!e!b x]"
    for given in (text, text.encode(), text.encode("utf-16")):
        for load in (yaml_files.load, yaml_files.load_all):
            with pytest.raises(yaml.YAMLError, match="%TAG"):
                load(given)
    assert yaml_files.load("a: b %TAG\nc: '%TAG'") == {"a": "b %TAG", "c": "%TAG"}
