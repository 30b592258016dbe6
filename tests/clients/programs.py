"""Programs and libraries that ask a server over HTTP or MCP: each does what its users do most, and
prints what it was answered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.clients.stand_in import DONE, KEY, StandIn, recipe

PORT, SECONDS = 8219, 100

PERSON = "import pydantic\nclass Person(pydantic.BaseModel):\n    name: str\n    age: int\n"
SHOWN = "print(person.name, person.age)\n"
ANSWERED = "ann 3"
"""What the stand-in writes where a schema wants a person."""


@dataclass(frozen=True, slots=True)
class Program:
    """package: of pip or npm, whose version is told; code: that is run, Python or JavaScript;
    wanted: what it prints."""

    package: str
    code: str
    wanted: str = DONE


OPENAI = PERSON + (
    "import openai\nclient = openai.OpenAI()\nasked = [{'role': 'user', 'content': 'hi'}]\n"
    "for chunk in client.chat.completions.create(model='m', messages=asked, stream=True):\n"
    "    print(chunk.choices[0].delta.content or '', end='')\n"
    "print(client.responses.create(model='m', input='hi').output_text)\n"
    "person = client.chat.completions.parse(model='m', messages=asked, response_format=Person)"
    ".choices[0].message.parsed\n" + SHOWN
)
LITELLM = (
    "import litellm\nprint(litellm.completion('openai/m', [{'role': 'user', 'content': 'hi'}])"
    ".choices[0].message.content)\n"
)
LANGCHAIN = PERSON + (
    "from langchain_openai import ChatOpenAI\nmodel = ChatOpenAI(model='m')\n"
    "print(model.invoke('hi').content)\n"
    "person = model.with_structured_output(Person, method='function_calling').invoke('Ann is 3')\n"
    + SHOWN
)
LLAMA_INDEX = PERSON + (
    "import os\nfrom llama_index.llms.openai_like import OpenAILike\n"
    "model = OpenAILike('m', is_chat_model=True, is_function_calling_model=True,"
    " api_base=os.environ['OPENAI_BASE_URL'], api_key=os.environ['OPENAI_API_KEY'])\n"
    "print(model.complete('hi'))\n"
    "person = model.as_structured_llm(Person).complete('Ann is 3').raw\n" + SHOWN
)
PYDANTIC_AI = PERSON + (
    "from pydantic_ai import Agent\n"
    "print(Agent('openai-chat:m').run_sync('hi').output)\n"
    "person = Agent('openai-chat:m', output_type=Person).run_sync('Ann is 3').output\n" + SHOWN
)
INSTRUCTOR = PERSON + (
    "import instructor, openai\nclient = instructor.from_openai(openai.OpenAI())\n"
    "person = client.chat.completions.create(model='m', response_model=Person,"
    " messages=[{'role': 'user', 'content': 'Ann is 3'}])\n" + SHOWN
)
AGENTS = (
    "from agents import Agent, Runner, function_tool, set_tracing_disabled\n"
    "set_tracing_disabled(True)\n"
    "@function_tool\ndef greet(name: str) -> str:\n    print('greeted', name)\n    return 'hi'\n"
    "print(Runner.run_sync(Agent('a', model='m', tools=[greet]), 'greet').final_output)\n"
)
OLLAMA = (
    "import ollama\nasked = [{'role': 'user', 'content': 'hi'}]\n"
    "print(ollama.list().models[0].model)\n"
    "print(ollama.generate('m', 'totals = [', suffix=')').response)\n"
    "print(ollama.chat('m', asked).message.content)\n"
)
MCP = (
    "import asyncio, time\nfrom mcp import ClientSession, StdioServerParameters\n"
    "from mcp.client.stdio import stdio_client\n"
    "async def main():\n    server = StdioServerParameters(command='redraft', args=['mcp'])\n"
    "    async with stdio_client(server) as pipes, ClientSession(*pipes) as session:\n"
    "        began = time.monotonic()\n        await session.initialize()\n"
    "        print(f'first answer after {time.monotonic() - began:.1f} s')\n"
    "        print(sorted(tool.name for tool in (await session.list_tools()).tools))\n"
    "asyncio.run(main())\n"
)
LLM = (
    "import json, os, pathlib, subprocess, sys\nfolder = pathlib.Path(os.environ['HOME'], 'llm')\n"
    "folder.mkdir()\n"
    "(folder / 'extra-openai-models.yaml').write_text(os.environ['RECIPE'])\n"
    "(folder / 'keys.json').write_text(json.dumps({'redraft': os.environ['OPENAI_API_KEY']}))\n"
    "os.environ['LLM_USER_PATH'] = str(folder)\n"
    "subprocess.run([sys.executable, '-m', 'llm', '-m', 'redraft', 'hi'])\n"
)
INSPECTOR = (
    "import { execFileSync } from 'node:child_process'\n"
    "const asked = ['--cli', 'redraft', 'mcp', '--method', 'tools/list']\n"
    "console.log(execFileSync('mcp-inspector', asked).toString())\n"
)
JS_OPENAI = (
    "import OpenAI from 'openai'\nconst client = new OpenAI()\n"
    "const messages = [{ role: 'user', content: 'hi' }]\n"
    "const answer = await client.chat.completions.create({ model: 'm', messages })\n"
    "console.log(answer.choices[0].message.content)\n"
)
JS_OLLAMA = (
    "import { Ollama } from 'ollama'\nconst messages = [{ role: 'user', content: 'hi' }]\n"
    "const headers = { Authorization: 'Bearer ' + process.env.OPENAI_API_KEY }\n"
    "const ollama = new Ollama({ host: process.env.OLLAMA_HOST, headers })\n"
    "console.log((await ollama.chat({ model: 'm', messages })).message.content)\n"
)
JS_AI = (
    "import { generateText, tool, stepCountIs, jsonSchema } from 'ai'\n"
    "import { createOpenAICompatible } from '@ai-sdk/openai-compatible'\n"
    "import { createOpenAI } from '@ai-sdk/openai'\n"
    "const options = { name: 'redraft', baseURL: process.env.OPENAI_BASE_URL,"
    " apiKey: process.env.OPENAI_API_KEY }\n"
    "const inputSchema = jsonSchema({ type: 'object', properties: { name: { type: 'string' } } })\n"
    "const execute = async ({ name }) => { console.log('greeted', name); return 'hi' }\n"
    "const tools = { greet: tool({ description: 'Greet.', inputSchema, execute }) }\n"
    "for (const model of [createOpenAICompatible(options)('m'), createOpenAI(options)('m')])\n"
    "  console.log((await generateText({ model, prompt: 'greet', tools,"
    " stopWhen: stepCountIs(3) })).text)\n"
)
PROGRAMS = {
    "openai": Program("openai", OPENAI, ANSWERED),
    "litellm": Program("litellm", LITELLM),
    "LangChain": Program("langchain-openai", LANGCHAIN, ANSWERED),
    "LlamaIndex": Program("llama-index-llms-openai-like", LLAMA_INDEX, ANSWERED),
    "pydantic-ai": Program("pydantic-ai-slim", PYDANTIC_AI, ANSWERED),
    "instructor": Program("instructor", INSTRUCTOR, ANSWERED),
    "openai-agents": Program("openai-agents", AGENTS, "greeted ann"),
    "ollama": Program("ollama", OLLAMA),
    "llm": Program("llm", LLM),
    "mcp": Program("mcp", MCP, "apply_edit"),
    "MCP Inspector": Program("npm:@modelcontextprotocol/inspector", INSPECTOR, "apply_edit"),
    "openai for JavaScript": Program("npm:openai", JS_OPENAI),
    "ollama for JavaScript": Program("npm:ollama", JS_OLLAMA),
    "Vercel's ai": Program("npm:ai", JS_AI, "greeted ann"),
}


def drive(name: str, clients: Path, work: Path) -> tuple[str, str]:
    """Return the version and the verdict of a program of the folder ``clients``."""
    program = PROGRAMS[name]
    is_npm, modules = program.package.startswith("npm:"), clients / "npm" / "node_modules"
    package = program.package.removeprefix("npm:")
    python = clients / "pip" / package / "bin" / "python"
    if not (modules / package if is_npm else python).exists():
        return "", f"not installed: {package}"
    (home := work / "home").mkdir(parents=True)
    if is_npm:
        version = json.loads((modules / package / "package.json").read_text())["version"]
        (file := clients / "npm" / "asked.mjs").write_text(program.code)
        command = ["node", str(file)]
    else:
        asked = f"from importlib.metadata import version; print(version({package!r}))"
        told = subprocess.run(
            [str(python), "-c", asked], capture_output=True, text=True, check=True
        )
        version, command = told.stdout.strip(), [str(python), "-c", program.code]
    stand_in = StandIn(home, PORT)
    programs = f"{Path(sys.executable).parent}:{modules / '.bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "HOME": str(home), "PATH": programs, "OPENAI_API_KEY": KEY}
    environment |= {"OLLAMA_HOST": stand_in.url, "OLLAMA_API_KEY": KEY}
    environment |= {"OPENAI_BASE_URL": f"{stand_in.url}/v1", "RECIPE": recipe("llm", stand_in.url)}
    try:
        ended = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=home,
            check=False,
        )
    finally:
        stand_in.end()
    if program.wanted in ended.stdout:
        first = ended.stdout.strip().splitlines()[0] if "first answer" in ended.stdout else ""
        return version, f"yes: {first or 'asked and answered'}"
    return version, f"no: {' '.join((ended.stdout + ended.stderr).split())[-200:]}"
