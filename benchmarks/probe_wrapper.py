"""Run by launching.py in the container: times commands in turn, each as all ranks of a launch.

Gets {"rounds": 3, "commands": {name: [word, …]}, "ranks": [{variable: value}, …]} and prints
{name: [seconds until the last rank ended, …]}.
"""  # noqa: INP001  # a script

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def seconds(command: list[str], environments: list[dict[str, str]]) -> float:
    start = time.perf_counter()
    ranks = [subprocess.Popen(command, env=env) for env in environments]
    failed = [rank.args for rank in ranks if rank.wait()]
    end = time.perf_counter()
    assert not failed, failed
    return end - start


def main() -> None:
    task = json.loads(sys.argv[1])
    environments = [os.environ | rank for rank in task["ranks"]]
    walls: dict[str, list[float]] = {name: [] for name in task["commands"]}
    for _ in range(task["rounds"]):
        for name, command in task["commands"].items():
            walls[name].append(seconds(command, environments))
    print(json.dumps(walls))


if __name__ == "__main__":
    main()
