"""Options that several commands share."""

import click

from orchestrator.scales import SCALES

DEFAULT_STORE = "runs"
"""The store's own default, which cannot be imported here: it would load pyarrow for a help text."""

scale_option = click.option(
    "--scale",
    type=click.Choice(list(SCALES)),
    default="laptop",
    show_default=True,
    help="; ".join(f"{scale.name}: {scale.about}" for scale in SCALES.values()) + ".",
)

where_option = click.option(
    "--where",
    multiple=True,
    metavar="FIELD=VALUE,…",
    help="Only trials with these settings, such as model=bilinear,factored or modulus!=2. May be repeated: conditions"
    " on different settings must all hold.",
)

store_option = click.option(
    "--store",
    envvar="ORCH_STORE",
    default=DEFAULT_STORE,
    show_default=True,
    show_envvar=True,
    metavar="FOLDER|URI",
    help="Where results are kept: a folder, or a bucket such as s3://bucket/runs.",
)

on_option = click.option(
    "--on",
    envvar="ORCH_CLUSTER",
    show_envvar=True,
    metavar="FILE",
    help="On the cluster of this launcher file, such as cluster/a100.yaml, which `ray up` started; with the store that"
    " the file names, unless --store is given.",
)
