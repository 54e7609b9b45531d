"""Frames of stack traces, one line each: JVM, .NET, Ruby, PHP, native code. And what is a language's own code. Pure."""

from __future__ import annotations

import re

from agentctx.repo.logs.found import RawFrame

RUNTIME = "<runtime>"  # what has no file, or one that no repository has
_JVM = re.compile(
    r"^[\s|]*(?:\[(?:ERROR|INFO|WARN\w*|error)\]\s+)?(?:at )?(?:[\w.@-]*/)*(?P<name>[A-Za-z_$][^()\s/]*[^()/]*)"
    r"\((?P<file>[^():\s]+\.(?:java|kts?|scala|groovy|clj)|Native Method|Unknown Source)(?::(?P<line>\d+))?\)"
)
_DOTNET = re.compile(
    r"^ {2,8}at (?P<name>[\w<>.`+$\[\], ?|&*-]+?)\((?!Native Method|Unknown Source)(?:[\w.`+<>\[\]&*?, ]* [\w@]+)?\)"
    r"(?: in (?P<path>.+):(?:line )?(?P<line>\d+))?\s*$"
)
_RUBY = re.compile(
    r"^\s*(?:from |# )?(?P<path>(?:[A-Za-z]:)?[^\s:#'\"(][^\s:'\"(]*?(?:\.(?:rb|rake|ru|gemspec|erb)|[Rr]akefile"
    r"|Gemfile|/bin/[\w-]+|/exe/[\w-]+)):(?P<line>\d+)(?::in [`'](?P<name>[^']+)')?\s*$"
)
_PHP = re.compile(r"^\s*#\d+ (?:(?P<path>.+?)\((?P<line>\d+)\): (?P<name>.+)|\[internal function\]: .*|\{main\})$")
_SANITIZER = re.compile(
    r"^\s*#\d+ 0x[0-9a-f]+ (?:\(.*\)|(?:in )?(?P<name>.+?)"
    r"(?: (?P<path>(?:[A-Za-z]:)?[^\s:()]+):(?P<line>\d+)(?::\d+)?| \(.*\)| \S+)?)(?: \(BuildId: \w+\))?$"
)
_GDB = re.compile(
    r"^\s*(?:#(?:\d  +|\d\d+ +)(?:0x[0-9a-f]+ in )?|frame #\d+: 0x[0-9a-f]+ \S*?`)(?P<name>[A-Za-z_~<?][^(]*?) ?\(.*\)"
    r"(?: at (?P<path>(?:[A-Za-z]:)?[^\s:]+):(?P<line>\d+)(?::\d+)?| from \S+|)$"
)
_TWO_LINES = re.compile(r"^[^\n]+\n\s+(?:at )?(?P<path>(?:[A-Za-z]:)?[^:\n]+):(?P<line>\d+)")
_OWN_CODE = re.compile(
    r"^/rustc/|/usr/src/rustc|/rust/deps/|[/\\]\.cargo[/\\](?:registry|git)[/\\]|[/\\]\.rustup[/\\]|/library/(?:std|core|alloc|test)/src/"
    r"|[/\\]go[/\\]pkg[/\\]mod[/\\]|[/\\]go(?:[-/]?[\d.]+)?(?:[/\\]x\d+)?[/\\]src[/\\](?:runtime|testing|internal|reflect|sync|time|net|os|io|fmt"
    r"|strings|bytes|encoding|context|database|crypto|sort|strconv|regexp|text|html|log|path|bufio|math)[/\\.]|^_testmain\.go"
    r"|/lib/gcc/|/include/c\+\+/|/gems/|/lib/ruby/|^<internal:"
    r"|/vendor/(?:phpunit|bin|symfony/phpunit-bridge)/|^phar:|/usr/(?:share/php|include|lib(?:64)?)/"
    r"|sysdeps/|/csu/|^\./(?:nptl|stdlib|csu|signal|assert|misc|malloc)/|libsanitizer/|/compiler-rt/"
    r"|[/\\]googletest[/\\]|[/\\]gtest[/\\]|\bcatch\.hpp$|/_/src/|[/\\]microsoft[^/\\]*[/\\]v?\d[^/\\]*[/\\]",
    re.IGNORECASE,
)
_WRAPPERS = ("invoke", "apply", "invokeSuspend", "call", "accept")
_BLOCK = re.compile(r"^(?:(?:block|rescue|ensure)(?: \(\d+ levels\))? in )+")


def is_runtime(path: str) -> bool:
    """Whether a path lies where languages and package managers install: it is in no repository."""
    return _OWN_CODE.search(path) is not None


def jvm_frame(line: str) -> RawFrame | None:
    """`at com.x.Foo.bar(Foo.java:12)`, also without `at`: the path is made of package and file. Line 0: no place."""
    if "(" not in line or (found := _JVM.match(line)) is None:
        return None
    owner, _, method = found["name"].rpartition(".")
    if not owner:
        return None
    if found["line"] is None:
        return RawFrame("<jvm>", 0)
    package = owner.rpartition(".")[0].replace(".", "/")
    path = f"{package}/{found['file']}" if package else found["file"]
    return RawFrame(path, int(found["line"]), _jvm_function(owner, method))


def _jvm_function(owner: str, method: str) -> str:
    """The method that holds a lambda: `lambda$total$0`, Kotlin's `MainKt$main$1.invoke`, Scala's `$anonfun$total$1`."""
    if method.startswith("lambda$") or "$anonfun$" in method:
        parts = [part for part in method.replace("$adapted", "").split("$") if part and not part.isdigit()]
        return parts[1] if len(parts) > 1 else method
    inner = owner.rpartition(".")[2].split("$")
    if method.split("$")[0] in _WRAPPERS and len(inner) > 2 and inner[-1].isdigit():
        named = [part for part in inner[1:] if part and not part.isdigit() and part != "anonfun"]
        return named[-1] if named else method
    return method


def jvm_path(class_name: str) -> str:
    """The source file of a Java class by its full name: `com.x.Foo$Bar` -> `com/x/Foo.java`."""
    return class_name.split("$")[0].replace(".", "/") + ".java"


def dotnet_frame(line: str) -> RawFrame | None:
    """`at Ns.Class.Method(String x) in /x/y.cs:line 12`. Line 0: no place."""
    if "at " not in line or (found := _DOTNET.match(line)) is None or "." not in found["name"]:
        return None
    if found["path"] is None:
        return RawFrame("<dotnet>", 0)
    return RawFrame(found["path"], int(found["line"]), _dotnet_function(found["name"]))


def _dotnet_function(name: str) -> str:
    """The method that was written: of a state machine `<Run>d__3.MoveNext`, of a lambda `<>c.<Run>b__0_1`."""
    written = re.findall(r"<(\w+)>", name)
    return written[-1] if written else re.sub(r"\[[^\]]*\]|`\d+", "", name).rpartition(".")[2]


def ruby_frame(line: str) -> RawFrame | None:
    """`from a.rb:1:in 'x'`, `# ./a.rb:1:in 'x'` or `a.rb:1:in 'x'`."""
    if ":" not in line or (found := _RUBY.match(line)) is None:
        return None
    return RawFrame(found["path"], int(found["line"]), ruby_function(found["name"] or ""))


def ruby_function(label: str) -> str | None:
    """The method of `block (2 levels) in Cart#first`; None at top level."""
    name = re.split(r"[#.]", _BLOCK.sub("", label))[-1]
    return None if not name or name.startswith("<") else name


def php_frame(line: str) -> RawFrame | None:
    r"""`#0 /p/x.php(12): Shop\Cart->load('x')`. Line 0: no place."""
    if "#" not in line or (found := _PHP.match(line)) is None:
        return None
    if found["path"] is None:
        return RawFrame("<php>", 0)
    called = re.split(r"->|::|\\", found["name"].partition("(")[0])[-1]
    return RawFrame(found["path"], int(found["line"]), called or None)


def native_frame(line: str) -> RawFrame | None:
    """A frame of a sanitizer or a debugger. Line 0: no place."""
    if "#" not in line or (found := _SANITIZER.match(line) or _GDB.match(line)) is None:
        return None
    if found["path"] is None:
        return RawFrame("<native>", 0)
    return RawFrame(found["path"], int(found["line"]), _native_function(found["name"] or ""))


def _native_function(name: str) -> str | None:
    name = name.split("(")[0].strip()
    return name.rpartition("::")[2].partition("<")[0] or None


def two_line_frame(text: str) -> RawFrame | None:
    """A function and, on the next line, its place, as Go and Rust write frames: `text` holds both lines."""
    found = _TWO_LINES.match(text) if "\n" in text else None
    return RawFrame(found["path"].strip(), int(found["line"])) if found else None


def callstack_path(line: str) -> str | None:
    """The path of the frame that a line is, in any of these languages; `RUNTIME` where that is nobody's code here."""
    frame = two_line_frame(line)
    if frame is None and line.lstrip().startswith(("at ", "#", "from ", "frame #")):
        frame = jvm_frame(line) or dotnet_frame(line) or php_frame(line) or native_frame(line) or ruby_frame(line)
    if frame is None:
        return None
    return RUNTIME if frame.path.startswith("<") or is_runtime(frame.path) else frame.path
