#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# usage: series/convert.py PATCH STAGE SOURCE TREE
#        series/convert.py --files STAGE SOURCE
#        series/convert.py --check STAGE FOREIGN
#
# Makes in TREE what the file PATCH of series/patches says, from the project's sources in STAGE and from
# the kernel's in SOURCE. Prints the patch's message. With --files, prints which files of the kernel the
# patches change. With --check, only looks whether some patch has each source, and whether a source, as a
# patch has it, matches FOREIGN. docs/upstream.md has the format.
import pathlib
import re
import sys
import textwrap

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


# The observer and what only it uses, and what the kernel crate has.
NOT_PROPOSED = re.compile(r"src/(observer|bindings\.rs|base\.rs|base/errno\.rs)|"
                          r"src/pure/wire/(inferred_invalidation|meaning)\.rs|"
                          r"kunit/(base|owners|inferred_invalidation|meaning)\.rs")


def proposed():
    """Returns the sources that the series has to have."""
    for path in [*(project / "src").rglob("*.rs"), *(project / "kunit").glob("*.rs"), *(project / "kunit").glob("c*/**/*.*"),
                 *(project / "kunit/header").glob("*")]:
        name = str(path.relative_to(project))
        if not NOT_PROPOSED.match(name):
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


def uses(text, here, to_kernel, dropped):
    """Moves the paths of the use statements that begin a line, and joins those of one crate. Leaves out
    those that end in one of `dropped`."""
    first, kept, last = {}, [], (None, None)

    def take(match):
        nonlocal last
        paths = list(flatten(re.sub(r"//[^\n]*", "", match[2])))
        paths = [re.sub(r"\s+", " ", path.strip()) for path in paths]
        after = [moved(path, here, to_kernel) for path in paths if not path.endswith(dropped)]
        attribute = text[:match.start()].rstrip("\n").rsplit("\n", 1)[-1].startswith("#[")
        # Those of a nested module are joined only if they follow each other.
        if attribute or match[1].strip():
            joined = {}
        elif not match[1]:
            joined = first
        else:
            joined = last[1] if last[0] == match.start() else {}
        last = match.end(), joined
        by_root = {}
        for path in after:
            by_root.setdefault(path.split("::")[0], []).append(path)
        marks = []
        for root, some in by_root.items():
            if root in joined:
                kept[joined[root]][1].extend(some)
            else:
                joined[root] = len(kept)
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

    return outside_uses(text, lambda part: NAMES.sub(take, part))


def outside_uses(text, change):
    """Changes a text except its use statements."""
    parts = re.split(r"(^ *(?:pub(?:\([^)]*\))? )?use [^;]+;\n)", text, flags=re.M)
    return "".join(part if at % 2 else change(part) for at, part in enumerate(parts))


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


def without_references(text):
    """Takes the places in this repository out of comments."""
    text = re.sub(r"\s+(?://[/!]? |\* )?\((?:reports/|docs/|SECURITY)[^)]*\)", "", text)
    needed = r"(?:Needed (?:until|as long as)|This function and the next two are needed until)"
    return re.sub(rf" \*\n \* {needed} [^*]*(?:\* [^*]*)?(?= \*/)", "", text)


def example(match):
    """Returns an example that is not compiled, without the lines that are there for the compiler."""
    return "".join(line for line in match[0].splitlines(True) if not re.match(r" *//[/!] #( .*)?\n", line))


def rust(text, source, target):
    to_kernel = target.startswith("rust/kernel/")
    here = module_path(source, project / "src", "crate") if source.is_relative_to(project / "src") else None
    # The kernel crate has a constant for each errno.
    text = re.sub(r"\berrno\(\s*((?:(?:crate|kernel)::)?bindings::E[A-Z]+),?\s*\)", r"\1", text)
    text = re.sub(r"(?:(?:crate|kernel)::)?bindings::(E[A-Z]+)\b", r"\1", text)
    if to_kernel:
        text = text.replace("use core::fmt;", "use kernel::fmt;")
    dropped = ["errno::errno"]
    imported = {path.strip() for use in USE.finditer(text) if not use[1] for path in flatten(use[2])}
    if to_kernel and imported & {"crate::bindings", "kernel::bindings"}:
        text = outside_uses(text, lambda part: re.sub(r"(?<![\w:])kernel::bindings::", "bindings::", part))
    if not re.search(r"(?<![\w:])bindings::", USE.sub("", text)):
        dropped.append("kernel::bindings")
    text = body(uses(text, here, to_kernel, tuple(dropped)), here, to_kernel)
    text = re.sub(r"(?:///|//!)\n//[/!] Superfluous with[^\n]*\n(//[/!] [^\n]*\n)*", "", text)
    text = without_references(text)
    for ours, theirs in names.items():
        text = re.sub(rf"{ours}(?!_?[a-z])", theirs, text)
    if to_kernel:
        text = text.replace("::kernel::", "$crate::").replace("RpcrdmaCm", "MyModule")
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
        text = re.sub(r"^ *//[/!] ```ignore\n(?: *//[/!].*\n)*? *//[/!] ```\n", example, text, flags=re.M)
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
    # The parameters of a pointer to a function are broken only if they have to be.
    for parameter in re.findall(r"(?:[^,()]|\([^()]*\))+\)?,?", parameters):
        parameter = parameter.strip()
        if len(parameter) > 100 - 8 * (column // 8):
            inner, rest = parameter.split(", ", 1)
            margin = column + inner.rindex("(") + 1
            parameter = f"{inner},\n" + "\t" * (margin // 8) + " " * (margin % 8) + rest
        here = lines[-1].expandtabs(8)
        space = "" if here.endswith("(") or not here.strip() else " "
        if len(here + space + parameter) > 80 and here.strip() and not here.endswith("("):
            lines.append("\t" * (column // 8) + " " * (column % 8))
            space = ""
        lines[-1] += space + parameter
    return "\n".join(lines)


def shims(template):
    """Fills in a template in C. `@NAME` stands for that function as a helper of Rust, `@@NAME` for the
    function as it is, exported, `@prototypes NAME...` for prototypes, and `@struct NAME` for a structure."""
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

    def structure(match):
        return re.search(rf"^(/\*[^\n]*\*/\n)?struct {match[1]} {{\n.*?^}};\n", header, re.M | re.S)[0]

    text = re.sub(r"^@struct (\w+)\n", structure, template, flags=re.M)
    text = re.sub(r"^@prototypes (.*)\n", prototypes, text, flags=re.M)
    text = without_references(re.sub(r"^@(@?)(\w+)\n", function, text, flags=re.M))
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


MOD = re.compile(r"^((?:#\[[^\n]*\]\n)*)((?:pub(?:\([^)]*\))? )?mod (\w+);\n)", re.M)


def beside(target):
    """Returns the folder of the modules that a file names."""
    path = pathlib.PurePath(target)
    is_root = path.name in ("mod.rs", "main.rs", "lib.rs", "rpcrdma_cm_kunit.rs")
    return str(path.parent if is_root else path.with_suffix(""))


def so_far(text, target, later, is_partial):
    """Returns a file without the modules whose files come `later`."""
    folder = beside(target)

    def keep(match):
        return "" if {f"{folder}/{match[3]}.rs", f"{folder}/{match[3]}/mod.rs"} & later else match[0]

    text = re.sub(r"\n{3,}", "\n\n", MOD.sub(keep, text))
    if is_partial and any(path.startswith(f"{folder}/") for path in later):
        text = re.sub(r"((?://![^\n]*\n)+)", r"\1\n// Its users follow.\n#![allow(unused)]\n", text, count=1)
    return text


def abi(text):
    """Returns a description of an ABI as the tree has it, for the release after that of the source."""
    makefile = (pathlib.Path(sys.argv[3]) / "Makefile").read_text(encoding="utf8")
    version, level = (int(re.search(rf"^{name} = (\d+)", makefile, re.M)[1]) for name in ("VERSION", "PATCHLEVEL"))
    text = re.sub(r"(?m)^KernelVersion:\t.*", f"KernelVersion:\t{version}.{level + 1}", text)
    text = re.sub(r"(?m)^Contact:\t.*", "Contact:\tlinux-rdma@vger.kernel.org", text)
    return re.sub(r"(?m)^\t+\.\. (scripts/keys writes these lines|end)\n\n?", "", text)


def keys():
    """Returns the keys of the control files, which docs/admin-guide.md has in a table."""
    guide = (project / "docs/admin-guide.md").read_text(encoding="utf8")
    entries = []
    for key, files, default, meaning in re.findall(r"(?m)^\| `(\w+=)` \| ([^|]*) \| ?([^|]*?) \| (.*) \|$", guide):
        meaning = meaning.replace("`", "``")
        meaning = textwrap.fill(meaning, 78, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
        entries.append(f"``{key}`` ({files}{default and f'; default {default}'})\n{meaning}\n")
    if not entries:
        raise Fault("docs/admin-guide.md has no table of keys")
    return "\n".join(entries)


def written(path, target):
    """Returns what the file `path` is at `target`."""
    text = path.read_text(encoding="utf8")
    if target.startswith("Documentation/ABI/"):
        return abi(text)
    if path.suffix == ".rst":
        return text.replace("@keys\n", keys())
    if path.suffix == ".rs":
        return rust(text, path, target)
    return shims(text) if path.suffix in (".c", ".h") else text


def check_foreign(foreign):
    """Refuses sources that match `foreign` as the patches have them."""
    for patch in sorted(patches.glob("*.txt")):
        for path, target in copies(read(patch)[1]):
            # abi() needs the kernel's source.
            found = not target.startswith("Documentation/ABI/") and re.search(rf".*{foreign}", written(path, target))
            if found:
                raise Fault(f"{target} names what only this repository has: {found[0].strip()}")


def changed_files(source):
    """Returns the kernel's files that the steps change."""
    found = set()
    for patch in patches.glob("*.txt"):
        for step in read(patch)[1]:
            if " -> " not in step and not step.startswith("partial "):
                names = step.split(" ", 2)[1].split("|")
                found.update([name for name in names if (source / name).exists()][:1])
    return sorted(found)


def main(patch, source, tree):
    message, steps = read(patches / patch)
    before, now, partial = {}, set(), set()
    for other in sorted(patches.glob("*.txt")):
        _, others = read(other)
        if other.name < patch:
            before.update({target: path for path, target in copies(others)})
        elif other.name > patch:
            now.update(target for _, target in copies(others))
        partial.update(step.split(" ")[1] for step in others if step.startswith("partial "))
    then = now | {target for _, target in copies(steps)}

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
        (tree / target).parent.mkdir(parents=True, exist_ok=True)
        (tree / target).write_text(so_far(written(path, target), target, now, target in partial), encoding="utf8")
    for target, path in before.items():
        if path.suffix == ".rs":
            text = written(path, target)
            mine = so_far(text, target, now, target in partial)
            if mine != so_far(text, target, then, target in partial):
                (tree / target).write_text(mine, encoding="utf8")
    for step in steps:
        if " -> " in step or step.startswith("partial "):
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
    if sys.argv[1] == "--files":
        print(*changed_files(pathlib.Path(sys.argv[3])), sep="\n")
    elif sys.argv[1] == "--check":
        check_foreign(sys.argv[3])
    else:
        main(sys.argv[1], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4]))
except Fault as fault:
    sys.exit(f"series/patches: {sys.argv[1]}: {fault}")
