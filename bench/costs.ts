import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import type { Attack, RequestOf } from '../test/system/costs/attack.js'
import { type AttackedServer, startAttackedServer } from '../test/system/costs/attacked-server.js'
import { allAttacks } from '../test/system/costs/attacks/index.js'
import { type FilledStore, fillStore } from '../test/system/costs/fixture.js'
import { withProvenBlocks } from '../test/system/costs/proven-blocks.js'
import { type Outcome, Stranger } from '../test/system/costs/send.js'
import type { ReaderOrder, ReaderReport } from './costs-reader.js'
import { withProcess } from './load.js'
import { withFolder } from './support.js'

/** How long a reader may wait beside one hostile request, and beside a client that uses its whole allowance, in milliseconds. */
const MOST_ALONE = 100
const MOST_BESIDE_ALL = 250
/** How long an honest submission may take then, in milliseconds, and how much memory the server may have, in bytes. */
const MOST_HONEST = 2000
const MOST_MEMORY = 1024 ** 3

/** How long the reader runs before and after an attack, in milliseconds. */
const QUIET = 500
/** How long one client keeps sending, and how long to wait for its answers, in milliseconds. */
const SENDING = 15_000
const ANSWERING = Number(process.env.COSTS_PATIENCE ?? 60_000)

const ATTACKER = '127.0.0.66'
const MiB = 1024 * 1024

/** The results of one attack. */
interface Measured {
  attack: Attack
  alone: Phase
  whole: Phase
  peak: number
}

interface Phase {
  report: ReaderReport
  outcomes: Outcome[]
  died: boolean
  /** How long it took until everything was answered, in milliseconds. */
  took: number
}

/**
 * What strangers may cost this host: for each attack, the longest wait of a reader beside one hostile request, and beside a
 * client that uses its whole allowance; the most memory; and how long an honest submission took. The exit code is 1 if one of
 * them exceeds its limit.
 *
 * The server owes a wait without the time in which it had work, but the machine ran others. The wait of an idle thread shows how
 * busy the machine was.
 *
 * @param wanted Names of attacks; none for all.
 */
export async function* costs(wanted: readonly string[] = []): AsyncGenerator<string> {
  const attacks = allAttacks()
  for (const name of wanted)
    if (!attacks.some((attack) => attack.name === name)) throw new Error(`there is no attack ${name}`)
  yield HEAD
  for (const attack of attacks) {
    if (wanted.length > 0 && !wanted.includes(attack.name)) continue
    const measured = await measure(attack)
    const over = whatIsOver(measured)
    if (over.length > 0) process.exitCode = 1
    yield rowOf(measured, over)
  }
}

async function measure(attack: Attack): Promise<Measured> {
  return await withFolder(async (folder) => {
    const [filled] = await fillStore([attack], folder)
    if (filled === undefined) throw new Error('no store was filled')
    return await withProvenBlocks(async (settings) => {
      const env = { ...filled.env, ...(attack.checksProofs === true && settings) }
      const alone = await inPhase({ attack, filled, env, requests: 1, connections: 1, from: 0 })
      const whole = await inPhase({ attack, filled, env, ...attack.allowance, from: 1 })
      return { attack, alone, whole, peak: Math.max(alone.peak, whole.peak) }
    })
  })
}

/** Runs a server and a reader beside an attack. */
async function inPhase(options: {
  attack: Attack
  filled: FilledStore
  env: FilledStore['env']
  requests: number
  connections: number
  /** The index of the first request. */
  from: number
}): Promise<Phase & { peak: number }> {
  const main = new URL('../src/cli/main.js', import.meta.url).pathname
  const profileFolder = process.env.COSTS_PROFILES
  const server = await startAttackedServer({
    main,
    env: options.env,
    ...(profileFolder && { profileFolder }),
  })
  try {
    for await (const phase of withProcess('./costs-reader.js', [], async function* (_: string, reader) {
      // Warms up: code is compiled when it is first read.
      await heard(reader, server, options, QUIET)
      server.forgetPeak()
      yield { ...(await attacked(reader, server, options)), peak: server.peakMemory() }
    }))
      return phase
    throw new Error('the reader reported nothing')
  } finally {
    await server.stop()
  }
}

async function heard(
  reader: ChildProcess,
  server: AttackedServer,
  { filled }: { filled: FilledStore },
  time: number,
): Promise<void> {
  order(reader, { order: 'read', url: server.url, pid: server.pid, path: filled.readPath, submits: true })
  await wait(time)
  order(reader, { order: 'stop' })
  await once(reader, 'message')
}

async function attacked(
  reader: ChildProcess,
  server: AttackedServer,
  options: Parameters<typeof inPhase>[0],
): Promise<Phase> {
  const { filled, requests, connections, from } = options
  const stranger = new Stranger(server.url, { address: ATTACKER, connections })
  order(reader, {
    order: 'read',
    url: server.url,
    pid: server.pid,
    path: filled.readPath,
    submits: requests > 1,
  })
  await wait(50)
  const since = performance.now()
  const outcomes = await sendAll(stranger, {
    requestOf: filled.requestOf,
    requests,
    connections,
    from,
    server,
  })
  const took = performance.now() - since
  if (server.isRunning()) await wait(QUIET)
  const died = !server.isRunning()
  const reported = once(reader, 'message')
  order(reader, { order: 'stop' })
  const [report] = (await reported) as [ReaderReport]
  stranger.leave()
  return { report, outcomes, died, took }
}

/** Sends until everything is sent or the time is over, and then waits for the answers within their own limit. */
async function sendAll(
  stranger: Stranger,
  options: {
    requestOf: RequestOf
    requests: number
    connections: number
    from: number
    server: AttackedServer
  },
): Promise<Outcome[]> {
  const { requestOf, requests, connections, from, server } = options
  const outcomes: Outcome[] = []
  const end = performance.now() + SENDING
  let sent = 0
  const isOver = (): boolean => sent >= requests || performance.now() > end || !server.isRunning()
  const client = async (): Promise<void> => {
    while (!isOver()) {
      const request = requestOf(from + sent++)
      outcomes.push(await stranger.send(request))
    }
  }
  const clients = Promise.all(Array.from({ length: Math.min(connections, requests) }, client))
  const patience = new AbortController()
  const { signal } = patience
  const gone = (async () => {
    const last = performance.now() + (requests === 1 ? ANSWERING / 2 : ANSWERING)
    while (server.isRunning() && performance.now() < last && !signal.aborted) await wait(20)
  })()
  await Promise.race([clients, gone])
  patience.abort()
  stranger.leave()
  await clients
  return outcomes
}

function order(reader: ChildProcess, command: ReaderOrder): void {
  reader.send(command)
}

function whatIsOver({ attack, alone, whole, peak }: Measured): string[] {
  // How long the hostile request itself takes does not matter here.
  const expected = new Set<Outcome>([...attack.statuses, 'held'])
  const odd = new Set([...alone.outcomes, ...whole.outcomes].filter((outcome) => !expected.has(outcome)))
  return [
    ...(alone.died ? ['died of one'] : []),
    ...(whole.died ? ['died'] : []),
    ...(alone.report.owed > MOST_ALONE ? ['reader beside one'] : []),
    ...(whole.report.owed > MOST_BESIDE_ALL ? ['reader'] : []),
    ...(peak > MOST_MEMORY ? ['memory'] : []),
    ...(longestHonest(whole) > MOST_HONEST ? ['honest submission'] : []),
    ...(odd.size > 0 ? [`answered ${[...odd].join(' ')}`] : []),
  ]
}

function longestHonest({ report }: Phase): number {
  return Math.max(0, ...report.submissions.map(({ owed }) => owed))
}

const HEAD = `| attack | one: reader, idle thread (ms) | one: answered after (ms) | all: requests × connections | all: reader, idle thread (ms) | answered after (ms) | honest submission (ms) | peak memory (MiB) | answers | over |
  | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |`

function rowOf({ attack, alone, whole, peak }: Measured, over: string[]): string {
  const { requests, connections } = attack.allowance
  const waited = ({ report: { longest, owed, idle } }: Phase): string =>
    `${longest.toFixed(0)} (${owed.toFixed(0)} owed), ${idle.toFixed(0)}`
  const refusals = whole.report.submissions.flatMap((each) => each.refusals).length
  const owed = longestHonest(whole)
  const slowest = whole.report.submissions.find((each) => each.owed === owed)
  const more = slowest?.admitted === false ? ' and more' : ''
  const refused = refusals > 0 ? `, refused ${refusals}×` : ''
  const honest = `${slowest?.took.toFixed(0) ?? ''} (${owed.toFixed(0)} owed)${more}${refused}`
  const cells = [
    `${attack.name}: ${attack.title}`,
    waited(alone),
    `${alone.took.toFixed(0)} ${counted(alone.outcomes)}`,
    `${requests} × ${connections}`,
    waited(whole),
    whole.took.toFixed(0),
    honest,
    (peak / MiB).toFixed(0),
    counted(whole.outcomes),
    over.length === 0 ? '' : `OVER: ${over.join(', ')}`,
  ]
  return `| ${cells.join(' | ')} |`
}

function counted(outcomes: readonly Outcome[]): string {
  const counts = new Map<Outcome, number>()
  for (const outcome of outcomes) counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
  return [...counts].map(([outcome, count]) => `${count}×${outcome}`).join(' ')
}
