"""Mistakes in the facts of a site and in what is asked of its job scripts, by name."""

from tests.unit.broken import SITE, TOOL, Case, append, case, replace, write

GPU_SITE = """\
description: A cluster to test with
vendor: nvidia
arch: sm_80
scheduler: slurm
launcher: srun
image: small
node: {gpus: 4, cpus: 64, cpus-per-task: 16, cpu-masks: ["0xf", "0xf0", "0xf00", "0xf000"]}
job: {account: required}
environment:
  always: {NCCL_CROSS_NIC: "1"}
"""
SCRIPT = ("--", "train.py")


def _facts(old: str, new: str) -> Case:
    """Return a site that is good except for these facts."""
    return case(write(SITE, GPU_SITE), replace(SITE, old, new))


def _job(*words: str, nodes: str = "2", facts: str = GPU_SITE) -> Case:
    command = ("jobscript", "--site", "here", "--nodes", nodes, *words)
    return case(write(SITE, facts), command=command)


def _paid(*words: str, nodes: str = "2", facts: str = GPU_SITE) -> Case:
    return _job("--account", "ada", *words, *SCRIPT, nodes=nodes, facts=facts)


_HOST = "host: {source: us, library-path: [/opt/mpi/lib]"
_HOST_MPI = f"mpi: {{name: cray-mpich, {_HOST}}}}}\n"
_LOCAL = "description: One machine\nvendor: cpu\nscheduler: local\nlauncher: local\nimage: small\n"
_ALWAYS = '  always: {NCCL_CROSS_NIC: "1"}\n'
SITES = {
    # A catalog with it loads; no job script is written.
    "site-alt-read": _paid(
        facts=GPU_SITE.replace(_ALWAYS, "  several-nodes: {FI_CXI_RDZV_PROTO: alt_read}\n")
    ),
    "site-arch": _facts("arch: sm_80", "arch: gfx90a"),
    "site-arch-form": _facts("arch: sm_80", "arch: A100"),
    "site-arch-of-cpu": case(append(SITE, "arch: sm_80\nnode: {gpus: 1}\n")),
    "site-builds-directives": case(
        append(SITE, "builds: {where: login, why: so, source: a page, directives: {q: x}}\n")
    ),
    "site-builds-ids": case(
        append(SITE, "builds: {where: elsewhere, ids: many, why: so, source: a page}\n")
    ),
    "site-engine-layout": case(
        append(SITE, "container: {product: singularity-ce}\nsif: {layout: layered}\n")
    ),
    "site-engine-zstd": case(
        append(SITE, "container: {product: apptainer, version: 1.3.6}\nsif: {compression: zstd}\n")
    ),
    "site-gpu-libraries": case(
        append(SITE, "container: {gpu-libraries: {of: image, why: so, source: us}}\n")
    ),
    "site-bind": _facts("job: ", "container: {binds: [opt/cray, '/a,/b', '/a:/b:ro']}\njob: "),
    "site-cache": _facts("job: ", "cache: '/scratch/$(id)/${USER}'\njob: "),
    "site-cache-home": _facts("job: ", "cache: ~/.cache\njob: "),
    "site-cpu-masks": _facts(', "0xf000"', ""),
    "site-cpu-masks-shared": _facts('"0xf000"', '"0x1800"'),
    "site-cpu-masks-form": _facts('"0xf000"', "0xf000"),
    "site-cpus": _facts("cpus-per-task: 16", "cpus-per-task: 17"),
    "site-driver": _facts("vendor: nvidia\narch: sm_80", 'vendor: amd\ndriver: {cuda: "12.4"}'),
    "site-directive": _facts("account: required", "directives: {partition: 'a b', Qos_1: x}"),
    "site-directive-number": _facts("account: required", "directives: {nice: 10}"),
    "site-environment-name": _facts(_ALWAYS, "  always: {SIFWRIGHT_SITE: other, 1A: x}\n"),
    "site-environment-own": _facts(_ALWAYS, "  always: {SIFWRIGHT_SITE: other}\n"),
    "site-environment-despite": _facts(
        _ALWAYS,
        "  always:\n    A: {value: x, despite: [mpich-gpu]}\n"
        "    B: {value: x, why: y, despite: [mpich-gpus, memhooks]}\n"
        "  not-set: {C: {why: y, despite: [kdreg]}}\n",
    ),
    "site-environment-despite-form": _facts(
        _ALWAYS, "  always: {A: {value: x, why: y, despite: mpich-gpu}}\n"
    ),
    "site-environment-twice": _facts(_ALWAYS, _ALWAYS + '  one-node: {NCCL_CROSS_NIC: "0"}\n'),
    "site-environment-number": _facts('"1"', "1"),
    "site-environment-lines": _facts('"1"', '"1\\n[always]"'),
    "site-environment-not-set": _facts(_ALWAYS, _ALWAYS + "  not-set: {NCCL_CROSS_NIC: why}\n"),
    "site-environment-reason": _facts(_ALWAYS, "  always: {A: {valu: x, why: 1}}\n"),
    "site-environment-group": _facts("  always:", "  allways:"),
    "site-gpus": _facts("gpus: 4", "gpus: 0"),
    "site-launcher": _facts("launcher: srun", "launcher: flux\nother-launchers: [mpirun]"),
    "site-launcher-unknown": _facts("launcher: srun", "launcher: srum"),
    "site-launcher-other": _facts("launcher: srun", "launcher: srun\nother-launchers: [flux]"),
    "site-mpi-environment": _facts(
        "job: ", "mpi: {name: mpich, environment: {SIFWRIGHT_SITE: x}}\njob: "
    ),
    "site-mpi-host": _facts(
        "job: ", "mpi: {name: mpich, host: {library-path: [lib, '/a:/b'], preload: x.so}}\njob: "
    ),
    "site-mpi-host-on-host": case(
        write(SITE, GPU_SITE), append(SITE, f"{_HOST_MPI}run-in: [host]\n")
    ),
    "site-module": _facts("job: ", "modules: {host: ['cuda 12', -x]}\njob: "),
    "site-partition": _facts(
        "job: {account: required}",
        "partitions: {gpu: production}\njob: {directives: {partition: gpus}}",
    ),
    "site-qos": _facts(
        "job: {account: required}", "qos: {short: tests}\njob: {directives: {qos: shrt}}"
    ),
    "site-registry-mirror": _facts("job: ", "registry-mirror: 'https://mirror.example/x'\njob: "),
    "site-scheduler-facts": case(
        append(SITE, 'job: {select: {ncpus: "4"}, gpu-directive: gres, resv-ports: true}\n')
    ),
    "site-time": _facts("account: required", "time: 30 minutes"),
    "include-site-environment": case(append(TOOL, "include: [site-environment, runscript]\n")),
}
_SPEAKS = "launch: {srun: {pmi: [cray_shasta, pmi2]}}\n"
# An image with an MPI of Open MPI, by its record.
_OPEN_MPI = (
    '{"sif": "image.sif", "sif_fingerprint": "", "plan":'
    ' {"site": "s", "image": "i", "id": "1", "steps": [], "facts": %s}}'
)
_FACTS = '{"mpi": "openmpi", "openmpi": "5.0.10", "pmi": "pmix"}'


def _with_open_mpi(*words: str, facts: str = GPU_SITE) -> Case:
    command = ("jobscript", "--site", "here", "--nodes", "2", "--account", "ada", *words, *SCRIPT)
    record = write("../../build/here/small/record.json", _OPEN_MPI % _FACTS)
    image = write("../../build/here/small/image.sif", "")
    return case(write(SITE, facts), record, image, command=command)


JOBS = {
    "job-constraint-of-pbs": _paid(
        *("--constraint", "nvme", "--qos", "high"),
        facts=_LOCAL.replace("local", "pbs", 1).replace("launcher: local", "launcher: mpiexec"),
    ),
    "job-directive-contradicts": _paid(
        *("--directive", "nodes=4", "--directive", "ntasks=9", "--directive", "mem=1"),
        *("--directive", "mem=2", "--directive", "job-name=x"),
    ),
    "job-directive-form": _paid("--directive", "mem=1 G", "--job-output", "~/log s"),
    "job-partition-unknown": _paid(
        *("--queue", "devel", "--qos", "shrt"),
        facts=f"{GPU_SITE}partitions: {{develop: tests}}\nqos: {{short: tests}}\n",
    ),
    "job-account-form": _job("--account", "a b", *SCRIPT),
    "job-argument-missing": _job("--account", "ada"),
    "job-argument-nul": _paid("--name", "x", "a\0b"),
    "job-run-in-unknown": _paid("--run-in", "docker"),
    "job-run-in-of-site": _paid("--run-in", "container", facts=f"{GPU_SITE}run-in: [host]\n"),
    "job-environment-form": _paid("--environment", "/my venv"),
    "job-environment-missing": _paid("--run-in", "host"),
    "job-environment-of-container": _paid("--run-in", "container", "--environment", "/venv"),
    "job-gpus-unknown": _paid(facts=GPU_SITE.replace("node: {gpus: 4", "#")),
    "job-host-mpi-of-host": _paid(
        *("--host-mpi", "--environment", "/venv"), facts=f"{GPU_SITE}{_HOST_MPI}"
    ),
    "job-host-mpi-of-site": _paid("--host-mpi"),
    "job-host-mpi-torchrun": _paid(
        *("--host-mpi", "--launcher", "torchrun"), facts=f"{GPU_SITE}{_HOST_MPI}"
    ),
    "job-image-unknown": _paid("--image", "smal"),
    "job-launcher-of-site": _paid("--launcher", "mpirun"),
    "job-launcher-unknown": _paid("--launcher", "srum"),
    "job-local-nodes": _job(*SCRIPT, facts=_LOCAL),
    "job-local-words": _paid("--time", "01:00:00", "--name", "x", nodes="1", facts=_LOCAL),
    "job-name-form": _paid("--name", "x\n#SBATCH --uid=0"),
    "job-nodes-text": _paid(nodes="two"),
    "job-nodes-many": _paid(nodes="1" * 30),
    "job-ranks": _paid("--tasks-per-node", "0"),
    "job-ranks-of-site": _paid("--tasks-per-node", "5"),
    "job-sif-of-host": _paid("--environment", "/venv", "--sif", "x.sif"),
    "job-sif-option": _paid("--sif=-x.sif"),
    "job-signal-form": _paid("--signal", "10"),
    "job-signal-of-pbs": _paid(
        *("--signal", "USR1@120"),
        facts=_LOCAL.replace("local", "pbs", 1).replace("launcher: local", "launcher: mpiexec"),
    ),
    "job-site-missing": case(command=("jobscript", "--nodes", "1", *SCRIPT)),
    "job-site-unknown": case(command=("jobscript", "--site", "hree", "--nodes", "1", *SCRIPT)),
    "job-pmi-form": _paid("--pmi", "PMI 2"),
    "job-pmi-of-site": _paid("--pmi", "pmix", facts=GPU_SITE + _SPEAKS),
    "job-pmi-of-torchrun": _paid("--pmi", "pmi2", "--launcher", "torchrun"),
    "job-mpi-alone": _with_open_mpi(facts=GPU_SITE + _SPEAKS),
    "job-mpi-alone-as-asked": _with_open_mpi("--pmi", "pmi2"),
    "job-mpi-not-said": _with_open_mpi(),
    "job-mpi-other-launcher": _with_open_mpi(
        facts=f"{GPU_SITE}{_SPEAKS}other-launchers: [mpirun]\n"
    ),
    "job-mpi-host": _with_open_mpi(facts=GPU_SITE + _SPEAKS + _HOST_MPI),
    "job-time-form": _paid("--time", "90"),
    "job-several": _job("--tasks-per-node", "9", "--time", "1h", "--", "", nodes="0"),
}
