"""Launcher files with one thing wrong, each with words of the error that names it."""

from pathlib import Path

from tests.cluster.filled import A100, GOOGLE, LOCAL, SLURM

SETUP = "bash ~/orch/cluster/setup.sh"


PINS = "uv venv --python 3.11; uv pip install ray[default]==2.60.0 torch==2.10.0"


WHEEL = "https://example.org/mamba_ssm-2.3.2+cu12torch{}cxx11abiTRUE-cp{}-cp{}-linux_x86_64.whl"


BROKEN: dict[str, tuple[Path, list[tuple[str, str]], str]] = {
    "a misspelt setting": (
        A100,
        [("idle_timeout_minutes", "idle_timeout_minuts")],
        "did you mean idle_timeout_minutes?",
    ),
    "a number in words": (
        A100,
        [("max_workers: 4  ", "max_workers: four  ")],
        "max_workers does not fit Ray's launcher",
    ),
    "a head that is no type": (
        A100,
        [("head_node_type: head", "head_node_type: boss")],
        "`head_node_type` must be one of",
    ),
    "an older Ray": (
        A100,
        [(SETUP, PINS.replace("2.60.0", "2.40.0"))],
        "would have Ray 2.40.0 and this environment has",
    ),
    "any Ray": (
        A100,
        [(SETUP, PINS.replace("==2.60.0", ""))],
        "the setup does not pin Ray: install ray[default,tune]==",
    ),
    "a nightly Ray": (
        A100,
        [(SETUP, PINS + " https://s3-us-west-2.amazonaws.com/ray-wheels/latest/ray-3.0.0.dev0-cp311-cp311-linux.whl")],
        "the setup installs a nightly Ray",
    ),
    "another Python": (
        A100,
        [(SETUP, PINS.replace("3.11", "3.10"))],
        "would have Python 3.10 and this environment has",
    ),
    "no Python": (A100, [(SETUP, PINS.replace("--python 3.11", ""))], "the setup does not name a Python"),
    "any torch": (A100, [(SETUP, PINS.replace("==2.10.0", ""))], "the setup does not pin torch"),
    "a torch too old": (
        A100,
        [(SETUP, PINS.replace("2.10.0", "2.4.1"))],
        "torch 2.4.1, and orch needs >=2.7: pin another",
    ),
    "a kernel for another torch": (
        A100,
        [(SETUP, f"{PINS} {WHEEL.format('2.8', '311', '311')}")],
        "the wheel of mamba_ssm is built for torch 2.8 and the cluster would have torch 2.10.0: make them equal",
    ),
    "a kernel for another Python": (
        A100,
        [(SETUP, f"{PINS} {WHEEL.format('2.10', '312', '312')}")],
        "the wheel of mamba_ssm is built for Python 3.12 and the cluster would have Python 3.11: make them equal",
    ),
    "a kernel to compile": (
        A100,
        [(SETUP, f"{PINS} mamba-ssm>=2.2")],
        "compiles mamba-ssm or causal-conv1d on every machine",
    ),
    "too many GPUs": (
        A100,
        [("GPU: 8", "GPU: 16")],
        "spot declares 16 GPUs and p4d.24xlarge has 8: correct its resources",
    ),
    "too many CPUs": (A100, [("CPU: 96", "CPU: 128")], "spot declares 128 CPUs and p4d.24xlarge has 96"),
    "a store on one machine": (
        A100,
        [("s3://orch-results/runs", "/home/ubuntu/runs")],
        "ORCH_STORE=/home/ubuntu/runs is a different folder on every machine: use s3://bucket/runs",
    ),
    "a relative store": (LOCAL, [("s3://orch-results/runs", "runs")], "ORCH_STORE=runs is a different folder"),
    "a temporary store": (SLURM, [("/shared/runs", "/tmp/runs")], "ORCH_STORE=/tmp/runs is a different folder"),
    "no store": (A100, [("ORCH_STORE=s3://orch-results/runs ", "")], "ORCH_STORE is not set: export it"),
    "workers without a role": (
        A100,
        [("    IamInstanceProfile: {Name: orch-worker}", "    # ")],
        "spot may not reach the store s3://orch-results/runs: set IamInstanceProfile",
    ),
    "no security group": (
        A100,
        [("SecurityGroupIds: [sg-0123456789abcdef0]", "EbsOptimized: true")],
        "head names no security group, and the one that Ray makes opens ssh to everybody",
    ),
    "a dashboard for everybody": (
        A100,
        [("--dashboard-host=127.0.0.1", "--dashboard-host=0.0.0.0")],
        "would listen on 0.0.0.0 and run whatever anybody sends: use --dashboard-host=127.0.0.1",
    ),
    "a Slurm dashboard for everybody": (
        SLURM,
        [("--head ", "--head --dashboard-host=0.0.0.0 ")],
        "the job server would listen on 0.0.0.0",
    ),
    "no authentication": (
        A100,
        [("RAY_AUTH_MODE=token", "")],
        "Ray's token authentication is off on the workers: start Ray there with RAY_AUTH_MODE=token",
    ),
    "no authentication under Slurm": (SLURM, [("RAY_AUTH_MODE=token", "")], "token authentication is off on the head"),
    "a token in the file": (
        A100,
        [("ulimit -n 65536; RAY_AUTH_MODE=token", "RAY_AUTH_MODE=token RAY_AUTH_TOKEN=sesame")],
        "a secret stands in the commands",
    ),
    "a token that stays here": (
        A100,
        [("  ~/.ray/auth_token: ~/.ray/auth_token\n", "")],
        "the machines do not get Ray's token",
    ),
    "a head that trains": (
        A100,
        [("resources: {CPU: 0} ", "resources: {CPU: 8} "), ("--num-cpus=0", "")],
        "the head would run trials and starve the driver: give it resources: {CPU: 0}",
    ),
    "a head that may vanish": (
        A100,
        [("InstanceType: m7i.2xlarge", "InstanceType: m7i.2xlarge\n      InstanceMarketOptions: {MarketType: spot}")],
        "the head is a spot instance, and the sweep ends with it",
    ),
    "no number of workers": (A100, [("max_workers: 4  ", "# ")], "max_workers is not set, and Ray takes 2"),
    "no workers": (A100, [("max_workers: 4", "max_workers: 0")], "max_workers 0 lets no worker start: raise it"),
    "too few workers": (
        A100,
        [("max_workers: 4  ", "max_workers: 2  ")],
        "spot wants up to 4 machines and max_workers is 2: make them agree",
    ),
    "no image": (
        A100,
        [("ImageId: ami-0123456789abcdef0", "EbsOptimized: true")],
        "spot names no image, and Ray takes",
    ),
    "an image that changes": (
        A100,
        [("ami-0123456789abcdef0", "latest_dlami")],
        "latest_dlami, which is not one fixed image",
    ),
    "a container that changes": (
        A100,
        [
            (
                "head_node_type: head",
                "docker: {image: 'rayproject/ray:latest', container_name: ray}\nhead_node_type: head",
            )
        ],
        "the image rayproject/ray:latest changes under its name: pin one by its version",
    ),
    "a nightly container": (
        A100,
        [
            (
                "head_node_type: head",
                "docker: {image: 'rayproject/ray:nightly-py311', container_name: ray}\nhead_node_type: head",
            )
        ],
        "the setup installs a nightly Ray",
    ),
    "an own key without its name": (
        A100,
        [("ssh_user: ubuntu", "ssh_user: ubuntu\n  ssh_private_key: ~/.ssh/cluster")],
        "head has no KeyName to go with ssh_private_key",
    ),
    "a key that is not there": (
        LOCAL,
        [("~/.ssh/cluster", "~/.ssh/lost")],
        "the ssh key ~/.ssh/lost does not exist here",
    ),
    "a folder that is not there": (
        A100,
        [("models: models", "models: modles")],
        "ships modles, which does not exist here",
    ),
    "the project left behind": (
        A100,
        [("  ~/orch/orchestrator: orchestrator\n", "")],
        "the project is not shipped to the machines (orchestrator): add its folders to file_mounts",
    ),
    "the whole folder": (A100, [("~/orch/orchestrator: orchestrator", "~/orch: .")], ".git"),
    "a head that starts no workers": (
        A100,
        [("--autoscaling-config=~/ray_bootstrap_config.yaml", "")],
        "the head would start no workers",
    ),
    "the newer autoscaler for ssh machines": (
        LOCAL,
        [("RAY_enable_autoscaler_v2=0", "")],
        "the workers would never join under Ray's newer autoscaler",
    ),
    "a machine twice": (
        LOCAL,
        [("10.0.0.2, 10.0.0.3", "10.0.0.1, 10.0.0.3")],
        "10.0.0.1 stands in head_ip and worker_ips",
    ),
    "machines left out": (
        LOCAL,
        [("cluster_name: orch-local", "cluster_name: orch-local\nmax_workers: 1")],
        "2 machines are listed and max_workers is 1: leave max_workers out",
    ),
    "no head": (LOCAL, [("head_ip: 10.0.0.1", "region: here")], "Please supply a `head_ip`"),
    "machines that everybody reaches": (
        GOOGLE,
        [("subnetworks/cluster", "subnetworks/default")],
        "head is in the default network, which opens ssh to everybody",
    ),
    "an image that changes on Google Cloud": (
        GOOGLE,
        [("images/common-cu128-v20260901", "images/family/common-cu128")],
        "head does not name one fixed image",
    ),
    "GPUs that would be moved": (
        GOOGLE,
        [("onHostMaintenance: TERMINATE", "onHostMaintenance: MIGRATE")],
        "on_demand has GPUs and cannot be moved while it runs",
    ),
    "GPUs that the machine of Google Cloud does not have": (
        GOOGLE,
        [("machineType: a2-highgpu-8g", "machineType: a2-highgpu-4g")],
        "on_demand declares 8 GPUs and a2-highgpu-4g has 4",
    ),
    "no way to Google Cloud's store": (
        GOOGLE,
        [("serviceAccounts:", "labels:")],
        "on_demand may not reach the store gs://orch-results/runs",
    ),
    "a machine that may only read from Google Cloud's store": (
        GOOGLE,
        [("devstorage.read_write", "devstorage.read_only")],
        "on_demand may not write to the store gs://orch-results/runs",
    ),
    "a zone of another region": (
        GOOGLE,
        [("availability_zone: us-central1-a", "availability_zone: us-east1-b")],
        "the zone us-east1-b is not in the region us-central1",
    ),
    "a region that is none": (
        A100,
        [("region: us-east-1", "region: us-east1")],
        "there is no AWS region us-east1: did you mean us-east-1?",
    ),
    "a head without Google's client": (
        GOOGLE,
        [("google-api-python-client google-auth cryptography\n\n", "six\n\n")],
        "install google-api-python-client in head_setup_commands",
    ),
    "a provider that is none": (A100, [("type: aws", "type: awz")], "Ray cannot use the file"),
    "Ray's own commands": (
        A100,
        [("setup_commands:\n  - bash", "initialization_commands:\n  - bash")],
        "the setup installs a nightly Ray",
    ),
}
