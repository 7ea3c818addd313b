"""Forks of every form: a child is a service instance of its own, and nothing is written twice."""

import subprocess
import sys
import textwrap


class TestForks:
    """A child is an instance of its own; nothing of its parent's is written twice."""

    def test_os_fork(self, program):
        """The child's spans have its own id and numbers, below the parent's span.

        parent  |------------- root (written by the parent) ---------|
        child        |-- child --|  its end of root writes nothing
        """
        code = """
            with managed_span("job", "root"):
                with managed_span("job", "before"):
                    pass
                pid = os.fork()
                if pid == 0:
                    with managed_span("job", "child"):
                        pass
                else:
                    os.waitpid(pid, 0)
        """
        records, _ = program.output(code)
        records.no_gap_no_repeat()
        assert len(records.instances()) == 2
        assert len(records.of("span")) == 3
        root, child = records.of("span", "root")[0], records.of("span", "child")[0]
        assert child["parent_span_id"] == root["span_id"]
        assert child["trace_id"] == root["trace_id"]
        introduced = [r["resource"]["attributes"] for r in records.of("process")]
        pids = {facts["process.pid"] for facts in introduced}
        assert len(pids) == 2
        child_facts = records.instances()[child["resource"]["attributes"]["service.instance.id"]]
        assert child_facts[0]["resource"]["attributes"]["process.parent_pid"] in pids

    def test_many_forks_under_load_of_threads(self, program):
        """No deadlock on a lock that another thread held; every id is new."""
        code = """
            threads = [threading.Thread(target=spans, args=(2000,)) for _ in range(2)]
            for thread in threads: thread.start()
            pids = []
            for number in range(8):
                pid = os.fork()
                if pid == 0:
                    spans(20, "child")
                    os._exit(0)
                pids.append(pid)
            for pid in pids: os.waitpid(pid, 0)
            for thread in threads: thread.join()
        """
        records, _ = program.output(code)
        records.no_gap_no_repeat()
        assert len(records.instances()) == 9
        assert len(records.of("span", "child")) == 160
        span_ids = [span["span_id"] for span in records.of("span")]
        assert len(set(span_ids)) == len(span_ids) == 4160

    def test_multiprocessing(self, program, tmp_path):
        """Workers that are forked, spawned, or forked by a server that has telemetry on itself;
        a carrier makes their spans the caller's."""
        (tmp_path / "work.py").write_text(
            program.BEGIN
            + textwrap.dedent(
                """
                import multiprocessing
                def work(name, headers):
                    with gymlog.carried(headers):
                        spans(50, name)
                if __name__ == "__main__":
                    for method in ("fork", "spawn", "forkserver"):
                        context = multiprocessing.get_context(method)
                        with gymlog.rollout_context("1-0"), managed_span("rollout", "caller"):
                            args = (method, gymlog.carrier())
                        workers = [context.Process(target=work, args=args) for _ in range(2)]
                        for worker in workers: worker.start()
                        for worker in workers: worker.join()
                """
            )
        )
        done = subprocess.run(
            [sys.executable, tmp_path / "work.py"],
            stdout=subprocess.PIPE,
            env=program.environment(),
            timeout=program.SECONDS,
            check=True,
        )
        records = program.parse(done.stdout)
        records.no_gap_no_repeat()
        for method, caller in zip(
            ("fork", "spawn", "forkserver"), records.of("span", "caller"), strict=True
        ):
            written = records.of("span", method)
            assert len(written) == 100
            assert len(written.instances()) == 2
            assert {span["parent_span_id"] for span in written} == {caller["span_id"]}
            assert {span["attributes"]["nemo.gym.rollout.id"] for span in written} == {"1-0"}
        span_ids = [span["span_id"] for span in records.of("span")]
        assert len(set(span_ids)) == len(span_ids)
        pids = [one["resource"]["attributes"]["process.pid"] for one in records.of("process")]
        assert len(set(pids)) == len(records.instances())
