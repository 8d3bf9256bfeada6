import type { Writable } from 'node:stream'
import type { Command } from 'commander'
import { harmless } from '../server/harmless-text.js'
import { CommandError } from './command-error.js'
import { DEFAULT_URL } from './default-url.js'

/** Adds `block`, `unblock` and `blocked`: the operator's routes of a running server, by the token of the environment. */
export function addBlockingCommands(program: Command): void {
  const command = (name: string, description: string): Command =>
    program
      .command(name)
      .description(description)
      .option('--url <url>', 'where the server listens', DEFAULT_URL)
  const what = 'outpoint:<txid>_<vout>, sha256:<hash of the content> or name:<name>'
  command('block', 'serve something no more: see docs/blocking.md')
    .argument('<what>', what)
    .requiredOption('--reason <text>', 'for yourself: nobody else is told')
    .action(async (text: string, { url, reason }: { url: string; reason: string }) => {
      print(process.stdout, await askServer({ url, path: 'block', body: { ...subjectOf(text), reason } }))
    })
  command('unblock', 'serve it again')
    .argument('<what>', what)
    .action(async (text: string, { url }: { url: string }) => {
      print(process.stdout, await askServer({ url, path: 'unblock', body: subjectOf(text) }))
    })
  command('blocked', 'say what is blocked, since when and why, each on a line of JSON').action(
    async ({ url }: { url: string }) => {
      for (let path: string | undefined = 'blocked?limit=1000'; path !== undefined; ) {
        const { blocked, next } = (await askServer({ url, path })) as { blocked: unknown[]; next?: string }
        for (const each of blocked) print(process.stdout, each)
        path = next === undefined ? undefined : `blocked?limit=1000&after=${encodeURIComponent(next)}`
      }
    },
  )
}

function print(out: Writable, value: unknown): void {
  out.write(`${harmless(JSON.stringify(value))}\n`)
}

function subjectOf(text: string): Record<string, string> {
  const [, kind, value] = /^(outpoint|sha256|name):(.+)$/.exec(text) ?? []
  if (kind === undefined || value === undefined)
    throw new CommandError(`${JSON.stringify(text)} is none of outpoint:…, sha256:… and name:…`)
  return { [kind]: value }
}

/** How long an answer may take, in milliseconds. */
const PATIENCE = 30_000

/** What a route of the operator answers. @throws CommandError where it is an error, or none comes. */
async function askServer({
  url,
  path,
  body,
}: {
  url: string
  path: string
  body?: object
}): Promise<unknown> {
  const token = process.env.ADMIN_TOKEN
  if (!token) throw new CommandError('set ADMIN_TOKEN to the token of the server')
  let response: Response
  let text: string
  try {
    response = await fetch(new URL(`/admin/${path}`, url), {
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(PATIENCE),
    })
    text = await response.text()
  } catch (cause) {
    throw new CommandError(`${url} does not answer`, { cause })
  }
  const answer = readJson(text)
  if (response.ok && answer !== undefined) return answer
  const reason = (answer as { error?: unknown } | undefined)?.error
  throw new CommandError(`the server answers ${response.status}: ${reason ?? 'that is no minetree server'}`)
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // What answers in something else is not what is meant; the caller says so.
    return undefined
  }
}
