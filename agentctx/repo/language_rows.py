"""The rows of the language table: what is known of each language as data."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from agentctx.repo.rewrites import bats_functions, plain_types, without_macros

Comment = tuple[str, str]  # what opens and what closes a comment; '' where the line's end closes it
Rewrite = Callable[[bytes], bytes]  # to text of the same length (`rewrites`)

TEST_DIRS = frozenset({"test", "tests", "testing"})
NEVER = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class TestRules:
    """Which definitions are tests. Patterns match whole names; of decorators the last part counts (`tokio::test`)."""

    names: re.Pattern[str] = NEVER  # of functions, in test files only
    named_anywhere: bool = False  # test names count in all files
    decorators: frozenset[str] = frozenset()
    fixtures: re.Pattern[str] = NEVER  # names of functions that prepare tests, in test files only
    fixture_decorators: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Language:
    """One row of the table.

    `grammar` is (package, function) of the grammar wheel, imported when the first file of the language is
    parsed. `query` names files in `queries/`, which together are one query. `test_file` matches names of test files,
    `test_dirs` are folder names whose files are all tests. `shebangs` are programs that run such files.
    """

    name: str
    extensions: tuple[str, ...]
    grammar: tuple[str, str]
    query: tuple[str, ...]
    comment: Comment
    filenames: tuple[str, ...] = ()
    test_file: re.Pattern[str] = NEVER
    test_dirs: frozenset[str] = TEST_DIRS
    tests: TestRules = field(default_factory=TestRules)
    shebangs: tuple[str, ...] = ()
    no_locals: frozenset[str] = frozenset()  # nodes that define nothing inside of functions (C's declarations)
    prepare: Rewrite | None = None  # done to all text before it is parsed
    relaxed: Rewrite | None = None  # done to text that the grammar doesn't understand
    wrappers: frozenset[str] = frozenset()  # nodes that belong to the one definition in them (`export ..`, `const ..`)


_HASH: Comment = ("#", "")
_SLASHES: Comment = ("//", "")
_JS_TEST = re.compile(r".*[._-](test|tests|spec|e2e|cy)\.[cm]?[jt]sx?|(test|tests|spec)\.[cm]?[jt]sx?")
_JS_DIRS = frozenset({"test", "tests", "__tests__", "__mocks__", "spec", "e2e", "cypress"})
_JS_WRAPPERS = frozenset(
    {"export_statement", "ambient_declaration", "lexical_declaration", "variable_declaration", "expression_statement"}
)
_C_WRAPPERS = frozenset(
    {
        *("pointer_declarator", "reference_declarator", "parenthesized_declarator", "attributed_declarator"),
        *("function_definition", "declaration", "field_declaration", "template_declaration", "type_definition"),
        *("friend_declaration",),
    }
)
_JVM_DIRS = frozenset({"test", "tests", "androidTest", "testFixtures", "commonTest", "jvmTest", "jsTest", "it"})
_JUNIT = TestRules(
    names=re.compile(r"test\w*"),
    decorators=frozenset(
        {"Test", "ParameterizedTest", "RepeatedTest", "TestFactory", "TestTemplate", "Property", "Theory", "Benchmark"}
    ),
    fixtures=re.compile(r"setUp\w*|tearDown\w*"),
    fixture_decorators=frozenset(
        {
            *("Before", "After", "BeforeEach", "AfterEach", "BeforeAll", "AfterAll", "BeforeClass", "AfterClass"),
            *("BeforeMethod", "AfterMethod", "BeforeTest", "AfterTest", "Rule", "ClassRule", "DataProvider", "Setup"),
        }
    ),
)

ROWS: tuple[Language, ...] = (
    Language(
        name="python",
        extensions=("py", "pyi"),
        grammar=("tree_sitter_python", "language"),
        query=("python.scm",),
        comment=_HASH,
        filenames=("SConstruct", "wscript"),
        test_file=re.compile(r"(test_.*|.*_test|conftest|tests)\.pyi?"),
        test_dirs=frozenset({"test", "tests"}),
        shebangs=("python", "python3"),
    ),
    Language(
        name="javascript",
        extensions=("js", "jsx", "mjs", "cjs"),
        grammar=("tree_sitter_javascript", "language"),
        query=("ecmascript.scm", "javascript.scm", "jsx.scm"),
        comment=_SLASHES,
        filenames=("Jakefile",),
        test_file=_JS_TEST,
        test_dirs=_JS_DIRS,
        wrappers=_JS_WRAPPERS,
        shebangs=("node", "nodejs", "bun"),
    ),
    Language(
        name="typescript",
        extensions=("ts", "mts", "cts"),
        grammar=("tree_sitter_typescript", "language_typescript"),
        query=("ecmascript.scm", "typescript.scm"),
        comment=_SLASHES,
        test_file=_JS_TEST,
        test_dirs=_JS_DIRS,
        wrappers=_JS_WRAPPERS,
        shebangs=("deno", "ts-node", "tsx"),
        relaxed=plain_types,
    ),
    Language(
        name="tsx",
        extensions=("tsx",),
        grammar=("tree_sitter_typescript", "language_tsx"),
        query=("ecmascript.scm", "typescript.scm", "jsx.scm"),
        comment=_SLASHES,
        relaxed=plain_types,
        test_file=_JS_TEST,
        test_dirs=_JS_DIRS,
        wrappers=_JS_WRAPPERS,
    ),
    Language(
        name="go",
        extensions=("go",),
        grammar=("tree_sitter_go", "language"),
        query=("go.scm",),
        comment=_SLASHES,
        test_file=re.compile(r".*_test\.go"),
        test_dirs=frozenset(),
        tests=TestRules(
            names=re.compile(r"(Test|Benchmark|Fuzz|Example)(_?[^a-z].*)?"), fixtures=re.compile(r"TestMain|Setup\w*")
        ),
    ),
    Language(
        name="java",
        extensions=("java",),
        grammar=("tree_sitter_java", "language"),
        query=("java.scm",),
        comment=_SLASHES,
        test_file=re.compile(r"(Test[A-Z0-9_].*|.*(Test|Tests|TestCase|IT))\.java"),
        test_dirs=_JVM_DIRS,
        tests=_JUNIT,
    ),
    Language(
        name="rust",
        extensions=("rs",),
        grammar=("tree_sitter_rust", "language"),
        query=("rust.scm",),
        comment=_SLASHES,
        test_file=re.compile(r"(tests?|.*_tests?)\.rs"),
        test_dirs=frozenset({"tests", "benches"}),
        tests=TestRules(
            decorators=frozenset(
                {"test", "rstest", "test_case", "bench", "quickcheck", "proptest", "wasm_bindgen_test", "parameterized"}
            ),
            fixture_decorators=frozenset({"fixture"}),
        ),
    ),
    Language(
        name="c",
        extensions=("c", "h"),
        grammar=("tree_sitter_c", "language"),
        query=("c.scm",),
        comment=_SLASHES,
        test_file=re.compile(r"(test[_-].*|.*[_-]tests?|tests?)\.[ch]"),
        tests=TestRules(
            names=re.compile(r"test_\w+|\w+_test"), fixtures=re.compile(r"(setup|teardown|set_up|tear_down)\w*")
        ),
        wrappers=_C_WRAPPERS,
        relaxed=without_macros,
        no_locals=frozenset({"declaration", "function_declarator", "pointer_declarator"}),
    ),
    Language(
        name="cpp",
        extensions=("cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "h++", "ipp", "inl", "tpp", "cu", "cuh"),
        grammar=("tree_sitter_cpp", "language"),
        query=("c.scm", "cpp.scm"),
        comment=_SLASHES,
        test_file=re.compile(r"(test[_-].*|.*[_-](unit)?tests?|tests?|.*Tests?)\.(cc|cpp|cxx|c\+\+|hh|hpp|hxx)"),
        test_dirs=TEST_DIRS | {"unittest", "unittests", "gtest"},
        tests=TestRules(names=re.compile(r"test_\w+"), fixtures=re.compile(r"SetUp\w*|TearDown\w*")),
        wrappers=_C_WRAPPERS,
        relaxed=without_macros,
        no_locals=frozenset({"declaration", "function_declarator", "pointer_declarator", "reference_declarator"}),
    ),
    Language(
        name="csharp",
        extensions=("cs", "csx"),
        grammar=("tree_sitter_c_sharp", "language"),
        query=("csharp.scm",),
        comment=_SLASHES,
        test_file=re.compile(r".*(Tests?|Specs?|Fixture|TestCase)\.cs|Test[A-Z].*\.cs"),
        test_dirs=TEST_DIRS | {"Tests", "Test", "UnitTests", "IntegrationTests"},
        tests=TestRules(
            decorators=frozenset(
                {
                    *("Fact", "Theory", "Test", "TestCase", "TestCaseSource", "TestMethod", "DataTestMethod"),
                    *("Benchmark", "FactAttribute", "TheoryAttribute", "TestAttribute", "TestMethodAttribute"),
                }
            ),
            fixture_decorators=frozenset(
                {
                    *("SetUp", "TearDown", "OneTimeSetUp", "OneTimeTearDown", "TestInitialize", "TestCleanup"),
                    *("ClassInitialize", "ClassCleanup", "GlobalSetup"),
                }
            ),
        ),
    ),
    Language(
        name="ruby",
        extensions=("rb", "rake", "gemspec", "ru", "podspec", "thor", "jbuilder", "rbi"),
        grammar=("tree_sitter_ruby", "language"),
        query=("ruby.scm",),
        comment=_HASH,
        filenames=(
            "Rakefile",
            "Gemfile",
            "Guardfile",
            "Capfile",
            "Vagrantfile",
            "Podfile",
            "Fastfile",
            "Brewfile",
            "Thorfile",
        ),
        test_file=re.compile(r".*_(spec|test)\.rb|(test|spec)_.*\.rb|tc_.*\.rb"),
        test_dirs=frozenset({"test", "tests", "spec", "specs", "features"}),
        tests=TestRules(names=re.compile(r"test_.+"), fixtures=re.compile(r"setup|teardown|before_all|after_all")),
        shebangs=("ruby",),
    ),
    Language(
        name="php",
        extensions=("php", "phtml", "php5", "phpt"),
        grammar=("tree_sitter_php", "language_php"),
        query=("php.scm",),
        comment=_SLASHES,
        test_file=re.compile(r".*(Test|TestCase|Cest|Spec)\.php"),
        test_dirs=TEST_DIRS | {"Tests", "Test"},
        tests=TestRules(
            names=re.compile(r"test.+"),
            decorators=frozenset({"Test", "test"}),
            fixtures=re.compile(r"(setUp|tearDown)\w*"),
            fixture_decorators=frozenset(
                {"Before", "After", "BeforeClass", "AfterClass", "DataProvider", "before", "after"}
            ),
        ),
        shebangs=("php",),
        wrappers=frozenset({"expression_statement"}),
    ),
    Language(
        name="kotlin",
        extensions=("kt", "kts"),
        grammar=("tree_sitter_kotlin", "language"),
        query=("kotlin.scm",),
        comment=_SLASHES,
        test_file=re.compile(r"(Test[A-Z0-9_].*|.*(Test|Tests|TestCase|Spec|IT))\.kts?"),
        test_dirs=_JVM_DIRS,
        tests=_JUNIT,
    ),
    Language(
        name="scala",
        extensions=("scala", "sc", "sbt", "mill"),
        grammar=("tree_sitter_scala", "language"),
        query=("scala.scm",),
        comment=_SLASHES,
        test_file=re.compile(r"(Test[A-Z0-9_].*|.*(Test|Tests|Spec|Suite|Specification|Check))\.scala"),
        test_dirs=_JVM_DIRS,
        tests=_JUNIT,
    ),
    Language(
        name="bash",
        extensions=("sh", "bash", "bats", "ksh", "zsh", "ebuild", "eclass"),
        grammar=("tree_sitter_bash", "language"),
        query=("bash.scm",),
        comment=_HASH,
        filenames=(
            ".bashrc",
            ".bash_profile",
            ".bash_aliases",
            ".profile",
            ".zshrc",
            ".zshenv",
            "PKGBUILD",
            "APKBUILD",
        ),
        test_file=re.compile(r".*\.bats|(test[_-].*|.*[_-]tests?)\.(ba)?sh"),
        tests=TestRules(
            names=re.compile(r"test_?\w+|@test.*"),
            fixtures=re.compile(r"(setup|teardown|setUp|tearDown|oneTimeSetUp|oneTimeTearDown)(_file|_suite)?"),
        ),
        shebangs=("bash", "sh", "dash", "ksh", "zsh", "bats"),
        wrappers=frozenset({"declaration_command"}),
        prepare=bats_functions,
    ),
)
