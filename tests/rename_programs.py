"""Programs in many languages with a name to rename, whose renamed text is known by construction.

In the templates ``>`` at the start of a line is a step of indentation, ``«n»`` the name as an
identifier, ``«c»`` in a comment, ``«s»`` in a string, ``«p»`` the beginning of a longer name, and
``«f»`` the number of the function.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

TEMPLATES: dict[str, str] = {
    "python": """
def work«f»(«n», other=None):
># Adds up «c», not «p»_rest.
>total = 0
>for each in «n»:
>>if each > len(«n»):
>>>total += each  # «c»
>print("«s» and", f"{«n»}", '«s»', other)
>«p»_rest = «n»[1:]
>return total + sum(«p»_rest)
""",
    "javascript": """
function work«f»(«n», other) {
>// Adds up «c», not «p»Rest.
>let total = 0;
>for (const each of «n») {
>>if (each > «n».length) {
>>>total += each; /* «c» */
>>}
>}
>const «p»Rest = «n».map((one) => one / «n».length);
>console.log("«s»", `sum ${«n»} of «s»`, '«s»', /«s»/g, «p»Rest);
>return total + other;
}
""",
    "typescript": """
export function work«f»(«n»: number[], other: number): number {
>// Adds up «c», not «p»Rest.
>let total: number = 0;
>for (const each of «n») {
>>if (each > «n».length) {
>>>total += each as number; /* «c» */
>>}
>}
>const «p»Rest: Array<number> = «n».slice(1);
>console.log("«s»", `sum ${«n»} of «s»`, '«s»', «p»Rest);
>return total + other;
}
""",
    "java": """
class Work«f» {
>/** Adds up «c», not «p»Rest. */
>int sum(int[] «n», int other) {
>>int total = 0;
>>for (int each : «n») {
>>>if (each > «n».length) {
>>>>total += each; // «c»
>>>}
>>}
>>int «p»Rest = «n»[0];
>>System.out.println("«s»" + «p»Rest + 's');
>>return total + other;
>}
}
""",
    "c": """
static int work«f»(const int *«n», int count)
{
>/* Adds up «c», not «p»_rest. */
>int total = 0;
>for (int i = 0; i < count; i++) {
>>if («n»[i] > *«n») {
>>>total += «n»[i]; // «c»
>>}
>}
>const int *«p»_rest = «n» + 1;
>printf("«s» %d\\n", *«p»_rest);
>return total;
}
""",
    "cpp": """
template <typename T> T work«f»(const std::vector<T> &«n», T other) {
>// Adds up «c», not «p»_rest.
>T total{};
>for (const auto &each : «n») {
>>if (each > «n».front()) {
>>>total += each; /* «c» */
>>}
>}
>auto «p»_rest = [&«n»](T one) { return one + «n».back(); };
>std::cout << "«s»" << R"(«s»)" << «p»_rest(other);
>return total;
}
""",
    "csharp": """
class Work«f»
{
>// Adds up «c», not «p»Rest.
>int Sum(int[] «n», int other)
>{
>>var total = 0;
>>foreach (var each in «n»)
>>{
>>>if (each > «n».Length) { total += each; /* «c» */ }
>>}
>>var «p»Rest = «n».Select(one => one + «n».Length);
>>Console.WriteLine("«s»" + $"sum {«n»} of «s»" + @"«s»" + «p»Rest);
>>return total + other;
>}
}
""",
    "go": """
func work«f»(«n» []int, other int) int {
>// Adds up «c», not «p»Rest.
>total := 0
>for _, each := range «n» {
>>if each > len(«n») {
>>>total += each /* «c» */
>>}
>}
>«p»Rest := «n»[1:]
>fmt.Println("«s»", `«s»`, «p»Rest)
>return total + other
}
""",
    "rust": """
fn work«f»(«n»: &[i64], other: i64) -> i64 {
>// Adds up «c», not «p»_rest.
>let mut total = 0;
>for each in «n».iter() {
>>if *each > «n».len() as i64 {
>>>total += *each; /* «c» */
>>}
>}
>let «p»_rest: Vec<i64> = «n».iter().map(|one| one + «n»[0]).collect();
>println!("«s» {}", «n».len());
>total + other + «p»_rest[0]
}
""",
    "ruby": """
def work«f»(«n», other)
># Adds up «c», not «p»_rest.
>total = 0
>«n».each do |each|
>>if each > «n».size
>>>total += each # «c»
>>end
>end
>«p»_rest = «n».map { |one| one / «n».size }
>puts "«s» #{«n»} of «s»", '«s»', «p»_rest
>total + other
end
""",
    "php": """
function work«f»(array $«n», int $other): int
{
>// Adds up «c», not $«p»Rest.
>$total = 0;
>foreach ($«n» as $each) {
>>if ($each > count($«n»)) {
>>>$total += $each; /* «c» */
>>}
>}
>$«p»Rest = array_slice($«n», 1);
>echo "«s»", '«s»', count($«p»Rest);
>return $total + $other;
}
""",
    "kotlin": """
fun work«f»(«n»: List<Int>, other: Int): Int {
>// Adds up «c», not «p»Rest.
>var total = 0
>for (each in «n») {
>>if (each > «n».size) {
>>>total += each /* «c» */
>>}
>}
>val «p»Rest = «n».map { one -> one + «n».size }
>println("«s» ${«n»} of «s»" + «p»Rest)
>return total + other
}
""",
    "swift": """
func work«f»(«n»: [Int], other: Int) -> Int {
>// Adds up «c», not «p»Rest.
>var total = 0
>for item in «n» {
>>if item > «n».count {
>>>total += item /* «c» */
>>}
>}
>let «p»Rest = «n».map { one in one + «n».count }
>print("«s» \\(«n») of «s»", «p»Rest)
>return total + other
}
""",
    "lua": """
local function work«f»(«n», other)
>-- Adds up «c», not «p»_rest.
>local total = 0
>for _, each in ipairs(«n») do
>>if each > #«n» then
>>>total = total + each --[[ «c» ]]
>>end
>end
>local «p»_rest = { unpack(«n») }
>print("«s»", '«s»', [[«s»]], «p»_rest)
>return total + other
end
""",
}
HEADS = {"go": "package work\n\n", "php": "<?php\n"}
INDENTATIONS: dict[str, tuple[str, ...]] = {
    "two spaces": ("  ",),
    "four spaces": ("    ",),
    "tabs": ("\t",),
    "mixed": ("  ", "\t"),
}
"""The steps of indentation, in turn from the left."""

OLD_NAMES = ["prices", "a", "data", "_hidden", "Values", "x1", "very_long_name_of_it", "números"]
NEW_NAMES = ["items", "b", "rows", "_kept", "Amounts", "y2", "another_long_name_of_it", "größe"]
WORDINGS = [
    ("rename {old} to {new}", False, False),
    ("Please rename the parameter `{old}` to `{new}`.", False, False),
    ("change the name of {old} to {new}", False, False),
    ("rename {old} -> {new}", False, False),
    ("{old} should be called {new}", False, False),
    ("rename {old} to {new}, also in comments", True, False),
    ("rename {old} to {new} in strings too", False, True),
    ("rename {old} to {new} in comments and strings", True, True),
    ("rename {old} to {new} everywhere", True, True),
]


@dataclass(frozen=True, slots=True)
class RenameProgram:
    """A text and what a rename of it must give."""

    text: str
    instruction: str
    wanted: str


def rename_program(language: str, indentation: str, rng: random.Random) -> RenameProgram:
    """A program of one to three functions, with line ends, wording and names by chance."""
    # A capital makes a constant in Ruby.
    fitting = [name for name in OLD_NAMES if language != "ruby" or name[0].islower()]
    old = rng.choice(fitting)
    new = rng.choice([name for name in NEW_NAMES if language != "ruby" or name[0].islower()])
    wording, comments, strings = rng.choice(WORDINGS)
    body = "".join(
        TEMPLATES[language].replace("«f»", str(number)) for number in range(rng.randrange(1, 4))
    )
    body = HEADS.get(language, "") + _indented(body, INDENTATIONS[indentation]).lstrip("\n")
    body = body.replace("\n", rng.choice(["\n", "\n", "\r\n"]))
    if rng.random() < 0.2:
        body = body.rstrip("\r\n")

    def filled(code: str, comment: str, string: str) -> str:
        marks = {"«n»": code, "«c»": comment, "«s»": string, "«p»": old}
        text = body
        for mark, name in marks.items():
            text = text.replace(mark, name)
        return text

    return RenameProgram(
        filled(old, old, old),
        wording.format(old=old, new=new),
        filled(new, new if comments else old, new if strings else old),
    )


def _indented(body: str, steps: tuple[str, ...]) -> str:
    lines = []
    for line in body.split("\n"):
        depth = len(line) - len(line.lstrip(">"))
        lines.append("".join(steps[at % len(steps)] for at in range(depth)) + line[depth:])
    return "\n".join(lines)
