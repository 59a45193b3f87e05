"""What running machines cost: as Ray's autoscaler counts them, at list prices, or at the price that is given."""

import json

import pytest
import ray
from click.testing import CliRunner
from ray._private.ray_constants import DEBUG_AUTOSCALING_STATUS
from ray.experimental.internal_kv import _internal_kv_del, _internal_kv_put

from orch.cli import main
from orch.cluster.meter import make_meter
from tests.cluster.filled import A100, EDITS, LOCAL, replace


@pytest.fixture(scope="module")
def _ray():
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def bootstrap(folder, text=None):
    """The launcher file as `ray up` leaves it on the head."""
    path = folder / "bootstrap.yaml"
    path.write_text(replace(A100.read_text(), EDITS[A100]) if text is None else text)
    return str(path)


def report(active, pending=()):
    """What Ray's autoscaler writes every few seconds."""
    status = {"autoscaler_report": {"active_nodes": active, "pending_nodes": list(pending)}}
    _internal_kv_put(DEBUG_AUTOSCALING_STATUS, json.dumps(status), overwrite=True)


@pytest.mark.usefixtures("_ray")
def test_machines_cost_their_list_prices_from_when_they_are_started(tmp_path):
    meter = make_meter(None, bootstrap(tmp_path))
    report({"head": 1, "spot": 2})
    assert meter() == pytest.approx(0.4032 + 2 * 16.298)
    report({"head": 1, "spot": 2}, [["10.0.0.9", "on_demand", "setting-up"]])
    assert meter() == pytest.approx(0.4032 + 2 * 16.298 + 21.957642)
    report({"head": 1})
    assert meter() == pytest.approx(0.4032)


@pytest.mark.usefixtures("_ray")
def test_before_the_first_report_no_machine_is_counted_too_cheap(tmp_path):
    _internal_kv_del(DEBUG_AUTOSCALING_STATUS)
    assert make_meter(None, bootstrap(tmp_path))() == pytest.approx(21.957642)


@pytest.mark.usefixtures("_ray")
def test_a_given_price_counts_for_each_machine_that_is_alive(tmp_path):
    assert make_meter(2.5, str(tmp_path / "none"))() == pytest.approx(2.5)


def test_without_prices_there_is_no_meter(tmp_path):
    assert make_meter(None, str(tmp_path / "none")) is None
    unknown = replace(A100.read_text(), EDITS[A100] | {"p4d.24xlarge": "p9.metal"})
    assert make_meter(None, bootstrap(tmp_path, unknown)) is None
    assert make_meter(None, bootstrap(tmp_path, replace(LOCAL.read_text(), EDITS[LOCAL]))) is None


def test_a_limit_on_a_cluster_without_prices_is_refused_before_anything_is_submitted(tmp_path):
    words = ["sweep", "main", "--scale", "smoke", "--max-dollars", "5", "--on", bootstrap(tmp_path, LOCAL.read_text())]
    refused = CliRunner().invoke(main, words)
    assert refused.exit_code == 2
    assert "--max-dollars needs the price of the machines" in refused.stderr
