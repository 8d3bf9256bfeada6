import type { Command } from 'commander'
import { field, readJson } from '../client/bounded-fetch.js'
import { escapeControlChars } from '../server/telemetry/public-text.js'
import { type CommandContext, CommandError, defaultUrl, usageError } from './command.js'
import { OverlayServer } from './overlay-server.js'

/** Adds `block`, `unblock` and `blocked`, which call the admin routes of a running server with ADMIN_TOKEN. */
export function addBlockingCommands(program: Command, context: CommandContext): void {
  // JSON with and without --json: scripts have always relied on it.
  const print = (record: object): void =>
    context.output.result(record, escapeControlChars(JSON.stringify(record)))
  const command = (name: string, description: string): Command =>
    program
      .command(name)
      .description(description)
      .option('--url <url>', 'where the server listens', defaultUrl())
  const subject = 'outpoint:<txid>_<vout>, sha256:<hash of the content> or name:<name>'
  command('block', 'stop serving something: see docs/operating.md')
    .argument('<what>', subject)
    .requiredOption('--reason <text>', 'required; shown to nobody but you')
    .action(async (text: string, { url, reason }: { url: string; reason: string }) => {
      print(await askServer({ url, path: 'block', body: { ...subjectOf(text), reason } }))
    })
  command('unblock', 'serve it again')
    .argument('<what>', subject)
    .action(async (text: string, { url }: { url: string }) => {
      print(await askServer({ url, path: 'unblock', body: subjectOf(text) }))
    })
  command('blocked', 'list what is blocked, since when and why, as lines of JSON').action(
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
    throw usageError(`${JSON.stringify(text)} does not start with outpoint:, sha256: or name:`)
  return { [kind]: value }
}

/** The longest answer that is read, in bytes: a page of `blocked` has 1,000 entries with a reason each. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024

/** The answer of an admin route. @throws CommandError if it is an error, or there is none. */
async function askServer({ url, path, body }: { url: string; path: string; body?: object }): Promise<object> {
  const token = process.env.ADMIN_TOKEN
  if (!token) throw usageError('set ADMIN_TOKEN to the token that the server was started with')
  const response = await new OverlayServer(url).ask(`/admin/${path}`, {
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
    maxBytes: MAX_ANSWER_BYTES,
  })
  const { status } = response
  const answer = readJson(response.body)
  if (status >= 200 && status < 300 && typeof answer === 'object' && answer !== null) return answer
  const reason = field(answer, 'error') ?? 'it is not a minetree server'
  const exit = status === 503 ? 'unavailable' : status === 404 ? 'notFound' : 'refused'
  throw new CommandError(`the server answered ${status}: ${reason}`, { exit })
}
