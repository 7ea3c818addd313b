"""`reconstruct html`: which spans are in the file, where it goes, what is said."""

from pathlib import Path


def test_all_spans_go_into_the_file_and_one_line_says_so(logs, run):
    done = run("html", "logs", "-o", "out.html")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("wrote 9 spans to out.html (")
    assert "<title>run run-1 – reconstruct</title>" in Path("out.html").read_text(encoding="utf-8")


def test_the_file_asks_no_network(logs, run):
    page = run("html", "logs").out
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page
    assert "src=" not in page.split("<script")[0]
    assert "https://" not in page


def test_an_id_and_slowest_choose(logs, run):
    assert run("html", "2-0", "logs", "-o", "a.html", "--json").json["spans"] == 3
    done = run("html", "--slowest", "2", "logs", "-o", "a.html", "--json")
    assert (done.json["spans"], done.json["notes"]) == (6, [])


def test_a_limit_leaves_out_whole_traces_and_says_so(logs, run):
    done = run("html", "logs", "--limit", "4", "-o", "a.html")
    assert done.err.splitlines()[0] == ("left out: 6 spans of 2 later traces; --limit 0 takes all")


def test_what_contradicts_itself_is_refused(logs, run):
    assert run("html", "2-0", "logs", "--slowest", "1").code == 2
    assert run("html", "logs", "--json").code == 2
    assert run("html", "nothing-of-the-kind", "logs").code == 1
    assert (
        run("html", "logs", "--run", "nope").err == "error: no spans of run 'nope' in these logs\n"
    )


def test_a_place_that_cannot_be_written_is_named(logs, run):
    done = run("html", "logs", "-o", "no/such/folder/a.html")
    assert (done.code, done.err.startswith("error: cannot write no/such/folder/a.html")) == (
        4,
        True,
    )
