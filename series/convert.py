#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# usage: series/convert.py PATCH STAGE SOURCE TREE
#        series/convert.py --check STAGE
#
# Makes in TREE what the file PATCH of series/patches says, from the project's sources in STAGE and from
# the kernel's in SOURCE. Prints the patch's message. With --check, only looks whether some patch has each
# source. docs/upstream.md has the format.
import pathlib
import re
import sys

project = pathlib.Path(sys.argv[2]).resolve()
patches = project / "series/patches"


class Fault(Exception):
    pass


def read(patch):
    """Returns the message of a patch, and its steps as lists of words."""
    message, _, steps = patch.read_text(encoding="utf8").partition("\n---\n")
    return message, [line for line in steps.splitlines() if line and not line.startswith("#")]


def copies(steps):
    """Yields the source and the target of each file that steps copy."""
    for step in steps:
        if " -> " not in step:
            continue
        source, target = step.split(" -> ")
        if source.endswith("/"):
            for path in sorted((project / source).rglob("*")):
                if path.suffix in (".rs", ".txt"):
                    yield path, target + str(path.relative_to(project / source))
        elif not (project / source).is_file():
            raise Fault(f"{source} does not exist")
        else:
            yield project / source, target


def module_path(path, root, crate):
    """Returns the Rust path of a file below root."""
    names = list(pathlib.PurePath(path).relative_to(root).with_suffix("").parts)
    return "::".join([crate, *(name for name in names if name not in ("mod", "lib", "main"))])


def proposed():
    """Returns the sources that the series has to have."""
    for path in [*(project / "src").rglob("*.rs"), *(project / "kunit").glob("*.rs"), *(project / "kunit").glob("c*/*"),
                 *(project / "kunit/header").glob("*")]:
        name = str(path.relative_to(project))
        if not re.match(r"src/(observer|bindings\.rs|base\.rs)|kunit/(base|owners)\.rs", name):
            yield name


def table():
    """Returns where the modules of src go that become modules of the kernel crate."""
    found, copied = {}, set()
    for patch in sorted(patches.glob("*.txt")):
        for source, target in copies(read(patch)[1]):
            copied.add(str(source.relative_to(project)))
            ours = source.is_relative_to(project / "src")
            if ours and source.suffix == ".rs" and target.startswith("rust/kernel/"):
                ours = module_path(source, project / "src", "crate")
                found[ours] = module_path(target, "rust/kernel", "kernel")
    missing = sorted(set(proposed()) - copied)
    if missing:
        raise Fault(f"no patch has {', '.join(missing)}")
    return found


def moved(path, here, to_kernel):
    """Returns the path as it is in the tree. `here` is the module that names it."""
    parts = path.split("::")
    if parts[0] == "super" and here:
        above = here.split("::")
        while parts and parts[0] == "super":
            above.pop()
            parts.pop(0)
        whole = "::".join([*above, *parts])
        # Only what moves away from its neighbours gets a whole path.
        return moved(whole, None, to_kernel) if table_of_names.get("::".join(above)) is None else path
    for length in range(len(parts), 0, -1):
        target = table_of_names.get("::".join(parts[:length]))
        if target:
            path = "::".join([target, *parts[length:]])
            break
    return re.sub(r"^kernel\b", "crate", path) if to_kernel else path


def flatten(tree, prefix=""):
    """Yields the paths of a use tree."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        yield prefix + tree
        return
    head, body, depth, start = tree[:brace], tree[brace + 1:tree.rindex("}")], 0, 0
    for at, char in enumerate(body + ","):
        depth += (char == "{") - (char == "}")
        if char == "," and not depth:
            if body[start:at].strip():
                yield from flatten(body[start:at], prefix + head)
            start = at + 1


def order(name):
    bare = name.rstrip("*")
    rank = 0 if name == "self" else 4 if not bare else 1 if bare[0].islower() else 2 if not bare.isupper() else 3
    return rank, name


def grouped(paths):
    """Returns a tree of nested dictionaries."""
    root = {}
    for path in paths:
        level = root
        for part in path.split("::"):
            level = level.setdefault(part, {})
    return root


def shown(tree, indent, trailing):
    """Returns the lines of a use tree, in the style of rustfmt and the kernel."""
    lines = []
    for name in sorted(tree, key=order):
        below = tree[name]
        path = name
        while len(below) == 1 and "self" not in below:
            (only, below), = below.items()
            path += "::" + only
        if not below:
            lines.append(("    " * indent) + path + ",")
        else:
            lines.append(("    " * indent) + path + "::{")
            lines += shown(below, indent + 1, True)
            lines.append(("    " * indent) + "},")
    if trailing:
        lines[-1] += " //"
    return lines


def use_statement(visibility, paths):
    # A name that is both used and a parent needs `self`.
    all_paths = set(paths)
    paths = [path + "::self" if any(other.startswith(path + "::") for other in all_paths) else path
             for path in sorted(all_paths)]
    lines = shown(grouped(paths), 0, False)
    lines[-1] = lines[-1].rstrip(",")
    indent = " " * (len(visibility) - len(visibility.lstrip()))
    return visibility + "use " + f"\n{indent}".join(lines) + ";\n"


USE = re.compile(r"^( *(?:pub(?:\([^)]*\))? )?)use ((?:[^;/]|//[^\n]*\n|/)+?);\n", re.M)


def uses(text, here, to_kernel):
    """Moves the paths of the use statements that begin a line, and joins those of one crate."""
    first, kept = {}, []

    def take(match):
        paths = list(flatten(re.sub(r"//[^\n]*", "", match[2])))
        paths = [re.sub(r"\s+", " ", path.strip()) for path in paths]
        after = [moved(path, here, to_kernel) for path in paths]
        attribute = text[:match.start()].rstrip("\n").rsplit("\n", 1)[-1].startswith("#[")
        by_root = {}
        for path in after:
            by_root.setdefault(path.split("::")[0], []).append(path)
        marks = []
        for root, some in by_root.items():
            # Those of a nested module, and those that others use, stay as they are.
            key = root if not attribute and not match[1] else len(kept)
            if key in first:
                kept[first[key]][1].extend(some)
            else:
                first[key] = len(kept)
                marks.append(f"\0{len(kept)}\0\n")
                kept.append((match[1], some))
        return "".join(marks)

    text = USE.sub(take, text)
    for number, (visibility, paths) in enumerate(kept):
        text = text.replace(f"\0{number}\0\n", use_statement(visibility, paths))
    return re.sub(r"\n{3,}", "\n\n", text)


NAMES = re.compile(r"(?<![\w:])(\$?crate|super|kernel)((?:::\w+)+)")


def body(text, here, to_kernel):
    """Moves the paths outside of use statements."""

    def take(match):
        macro = match[1].startswith("$")
        path = match[0].lstrip("$")
        after = moved(path, here if path.startswith("super") else None, to_kernel)
        if macro:
            return after.replace("crate", "$crate", 1) if after.startswith("crate") else "::" + after
        return after

    parts = re.split(r"(^ *(?:pub(?:\([^)]*\))? )?use [^;]+;\n)", text, flags=re.M)
    return "".join(part if at % 2 else NAMES.sub(take, part) for at, part in enumerate(parts))


def filled(text):
    """Wraps comments whose lines have become too long."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        comment = re.match(r"( *//[/!]? )\S", lines[at])
        if comment and len(lines[at]) > 100 and " " in lines[at][len(comment[1]):100]:
            head, _, tail = lines[at][:101].rpartition(" ")
            tail += lines[at][101:]
            lines[at] = head
            following = lines[at + 1] if at + 1 < len(lines) else ""
            if re.match(re.escape(comment[1]) + r"[\w`\[(]", following):
                lines[at + 1] = comment[1] + tail + " " + following[len(comment[1]):]
            else:
                lines.insert(at + 1, comment[1] + tail)
        at += 1
    return "\n".join(lines)


def rust(text, source, target):
    to_kernel = target.startswith("rust/kernel/")
    here = module_path(source, project / "src", "crate") if source.is_relative_to(project / "src") else None
    text = body(uses(text, here, to_kernel), here, to_kernel)
    text = re.sub(r"//!\n//! Superfluous with[^\n]*\n(//! [^\n]*\n)*", "", text)
    for ours, theirs in names.items():
        text = re.sub(rf"{ours}(?!_?[a-z])", theirs, text)
    if to_kernel:
        text = text.replace("::kernel::", "$crate::")
        for name in re.findall(r"^pub\(crate\) use (\w+);\n", text, re.M):
            text = text.replace(f"macro_rules! {name} ", f"#[macro_export]\nmacro_rules! {name} ")
        text = re.sub(r"\bpub\(crate\)", "pub", text)
        # The type of these directions is another one in the bindings of the kernel crate.
        text = re.sub(r"(direction(?:\(\))?) as u32", r"\1.into()", text)
        if "$crate::LocalModule" in text:
            # That of the module which uses the macro.
            text = text.replace("$crate::LocalModule", "crate::LocalModule")
            text = text.replace("#[macro_export]", "#[allow(clippy::crate_in_macro_def)]\n#[macro_export]")
        text = re.sub(r"```(no_run|compile_fail,E\d+)", "```ignore", text)
    return filled(text)


def functions(path):
    """Returns the functions of a C file, each with its comment."""
    text = path.read_text(encoding="utf8")
    pattern = r"((?:/\*(?:(?!\*/).)*\*/\n)?)(^(?!static)[a-z][\w *]*?[ *](\w+)\((?:[^{;]*)\)\n\{\n.*?^\}\n)"
    return {name: (comment, code) for comment, code, name in re.findall(pattern, text, re.M | re.S)}


def renamed(function):
    return f"rust_helper_{names[function]}"


def declared(line):
    """Returns a declaration in lines of up to 80 columns."""
    head, _, parameters = line.partition("(")
    column = len(head) + 1
    lines = [head + "("]
    for parameter in re.findall(r"[^,]+,?", parameters):
        parameter = parameter.strip()
        here = lines[-1].expandtabs(8)
        space = "" if here.endswith("(") or not here.strip() else " "
        if len(here + space + parameter) > 80 and here.strip() and not here.endswith("("):
            lines.append("\t" * (column // 8) + " " * (column % 8))
            space = ""
        lines[-1] += space + parameter
    return "\n".join(lines)


def shims(template):
    """Fills in a template in C. `@NAME` stands for that function as a helper of Rust, `@@NAME` for the
    function as it is, exported, and `@prototypes NAME...` for prototypes."""
    known = {**functions(project / "src/shim.c"), **functions(project / "src/rdma/workarounds.c")}
    header = (project / "src/shim.h").read_text(encoding="utf8")
    plain = tuple(name for at in re.findall(r"^@(?:@|prototypes )(.*)\n", template, re.M) for name in at.split())

    def function(match):
        name = match[2]
        if name not in known:
            raise Fault(f"no function {name}")
        comment, code = known[name]
        if match[1]:
            return f"{comment}{code}EXPORT_SYMBOL_GPL({name});\n"
        head, brace, rest = code.partition("\n{\n")
        return comment + declared("__rust_helper " + " ".join(head.replace(name, renamed(name)).split())) + brace + rest

    def prototypes(match):
        found = [re.findall(rf"^\w[^;{{}}#/]*\b{name}[^;]*;\n", header, re.M) for name in match[1].split()]
        return "".join("".join(some) for some in found)

    text = re.sub(r"^@prototypes (.*)\n", prototypes, template, flags=re.M)
    text = re.sub(r"^@(@?)(\w+)\n", function, text, flags=re.M)
    for ours, theirs in names.items():
        if ours.startswith(plain):
            text = re.sub(rf"\b{ours}\b", theirs, text)
        elif ours.startswith(("shim", "work")):
            text = re.sub(rf"\b{ours}\b(?=\()", renamed(ours), text)
        else:
            text = re.sub(rf"{ours}(?!_?[a-z])", theirs, text)
    return text


def shape(line):
    """Returns what lines of a sorted list have in common."""
    return re.sub(r"[\w./-]+(?=[;>\"]*$)", "X", line.strip())


def insert(path, new):
    """Inserts `new` into the sorted list of lines that look like its last one."""
    lines = path.read_text(encoding="utf8").splitlines()
    added = new.split("\\n")
    alike = [at for at, line in enumerate(lines) if shape(line) == shape(added[-1])]
    if not alike:
        raise Fault(f"{path}: no line is like {added[-1]}")
    after = [at for at in alike if lines[at].strip() > added[-1].strip()]
    at = after[0] if after else alike[-1] + 1
    while after and lines[at - 1].lstrip().startswith(("#[", "#ifdef", "#if ")):
        at -= 1
    lines[at:at] = added
    path.write_text("\n".join(lines) + "\n", encoding="utf8")


def replace(path, old, new):
    text = path.read_text(encoding="utf8")
    if text.count(old) != 1:
        raise Fault(f"{path}: {old!r} is there {text.count(old)} times")
    path.write_text(text.replace(old, new), encoding="utf8")


def main(patch, source, tree):
    message, steps = read(patches / patch)

    def original(names):
        name = next((one for one in names.split("|") if (tree / one).exists() or (source / one).exists()), names)
        path = tree / name
        if not path.exists():
            if not (source / name).exists():
                raise Fault(f"the kernel has no {name}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes((source / name).read_bytes())
        return path

    for path, target in copies(steps):
        text = path.read_text(encoding="utf8")
        if path.suffix == ".rs":
            text = rust(text, path, target)
        elif path.suffix in (".c", ".h"):
            text = shims(text)
        (tree / target).parent.mkdir(parents=True, exist_ok=True)
        (tree / target).write_text(text, encoding="utf8")
    for step in steps:
        if " -> " in step:
            continue
        verb, name, rest = step.split(" ", 2)
        if verb == "insert":
            insert(original(name), rest)
        elif verb == "append":
            path = original(name)
            path.write_text(path.read_text(encoding="utf8") + (project / rest).read_text(encoding="utf8"), encoding="utf8")
        elif verb == "before":
            mark, file = rest.rsplit(" ", 1)
            mark = mark.replace("\\n", "\n")
            replace(original(name), mark, (project / file).read_text(encoding="utf8") + mark)
        elif verb == "replace":
            old, new = (part.replace("\\n", "\n") for part in rest.split(" => "))
            replace(original(name), old, new)
        else:
            raise Fault(f"what is {verb}?")
    print(message)


names = {}
for line in (project / "series/names").read_text(encoding="utf8").splitlines():
    if line and not line.startswith("#"):
        ours, theirs = line.split()
        names[ours] = theirs
try:
    table_of_names = table()
    if sys.argv[1] != "--check":
        main(sys.argv[1], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4]))
except Fault as fault:
    sys.exit(f"series/patches: {sys.argv[1]}: {fault}")
