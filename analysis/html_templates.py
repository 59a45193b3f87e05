"""HTML templates: files named `*.html.j2` in the folder `templates` of a package."""

from jinja2 import Environment, PackageLoader, StrictUndefined


def open_templates(package: str) -> Environment:
    """Open a package's templates. Values are escaped unless they are `Markup`; an undefined one raises an error."""
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
