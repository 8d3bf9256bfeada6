import type { Command } from 'commander'
import { harmless } from '../server/harmless-text.js'
import type { CommandContext } from './command-context.js'
import { CommandError } from './command-error.js'
import { DEFAULT_URL } from './default-url.js'

/** Adds `block`, `unblock` and `blocked`: the operator's routes of a running server, by the token of the environment. */
export function addBlockingCommands(program: Command, context: CommandContext): void {
  // JSON with and without --json, as scripts have had it from the start.
  const print = (record: object): void => context.output.result(record, harmless(JSON.stringify(record)))
  const command = (name: string, description: string): Command =>
    program
      .command(name)
      .description(description)
      .option('--url <url>', 'where the server listens', DEFAULT_URL)
  const what = 'outpoint:<txid>_<vout>, sha256:<hash of the content> or name:<name>'
  command('block', 'serve something no more: see docs/blocking.md')
    .argument('<what>', what)
    .requiredOption('--reason <text>', 'required; for yourself: nobody else is told')
    .action(async (text: string, { url, reason }: { url: string; reason: string }) => {
      print(await askServer({ url, path: 'block', body: { ...subjectOf(text), reason } }))
    })
  command('unblock', 'serve it again')
    .argument('<what>', what)
    .action(async (text: string, { url }: { url: string }) => {
      print(await askServer({ url, path: 'unblock', body: subjectOf(text) }))
    })
  command('blocked', 'say what is blocked, since when and why, each on a line of JSON').action(
    async ({ url }: { url: string }) => {
      for (let path: string | undefined = 'blocked?limit=1000'; path !== undefined; ) {
        const { blocked, next } = (await askServer({ url, path })) as { blocked: object[]; next?: string }
        for (const each of blocked) print(each)
        path = next === undefined ? undefined : `blocked?limit=1000&after=${encodeURIComponent(next)}`
      }
    },
  )
}

function subjectOf(text: string): Record<string, string> {
  const [, kind, value] = /^(outpoint|sha256|name):(.+)$/.exec(text) ?? []
  if (kind === undefined || value === undefined)
    throw new CommandError(`${JSON.stringify(text)} is none of outpoint:…, sha256:… and name:…`, {
      exit: 'usage',
    })
  return { [kind]: value }
}

/** How long an answer may take, in milliseconds. */
const PATIENCE = 30_000

/** What a route of the operator answers. @throws CommandError where it is an error, or none comes. */
async function askServer({ url, path, body }: { url: string; path: string; body?: object }): Promise<object> {
  const token = process.env.ADMIN_TOKEN
  if (!token) throw new CommandError('set ADMIN_TOKEN to the token of the server', { exit: 'usage' })
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
    throw new CommandError(`${url} does not answer`, { cause, exit: 'unavailable' })
  }
  const answer = readJson(text)
  if (response.ok && typeof answer === 'object' && answer !== null) return answer
  const reason = (answer as { error?: unknown } | undefined)?.error
  const exit = response.status === 503 ? 'unavailable' : response.status === 404 ? 'notFound' : 'refused'
  throw new CommandError(`the server answers ${response.status}: ${reason ?? 'that is no minetree server'}`, {
    exit,
  })
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // What answers in something else is not what is meant; the caller says so.
    return undefined
  }
}
