import { formatOutpoint } from '../backend/src/protocol/outpoint.js'
import { type Attack, nameOf } from '../test/system/hostile/attack.js'
import { CLIENT_PROGRAM } from '../test/system/hostile/attacks/client.js'
import { allAttacks } from '../test/system/hostile/attacks/index.js'
import { HONEST_RESOLVING, resolveAttacks, TRUTH } from '../test/system/hostile/attacks/resolve.js'
import { type ClientEnd, runClient } from '../test/system/hostile/run-client.js'
import { type Features, Stage } from '../test/system/hostile/stage.js'
import { ClientPage, type PageEnd } from './clients-browser.js'

const MiB = 1024 * 1024

/** What any one server may cost a command with its default settings: milliseconds, and bytes of memory. */
const MOST_TIME = 60_000
const MOST_MEMORY = 512 * MiB
/** And in fees, against what the same command pays where nobody means harm. */
const MOST_PAID = 3

/** How long a page may do nothing else, in milliseconds. */
const MOST_BLOCKED = 250

/** When a command is killed: it is over by then. */
const CAP = {
  time: Number(process.env.CLIENTS_CAP ?? 90) * 1000,
  memory: Number(process.env.CLIENTS_MEMORY_CAP ?? 2048) * MiB,
}

/** The command that is measured: that of this build, unless another one is named. */
const MAIN = process.env.MINETREE_CLI ?? new URL('../src/cli/main.js', import.meta.url).pathname

/** One attack, measured. */
interface Measured {
  end: ClientEnd
  /** Satoshis in fees of signed mints that left the process. */
  paid: number
  mints: number
  /** Requests that a host saw which the client should not have gone to. */
  visits: number
  /** What hostile servers were allowed to send, in bytes. */
  sent: number
}

/**
 * What hostile servers cost those who ask them: for each command and each deed of a server the time until the command ends, the
 * most memory, the fees that were signed, and the requests that were led astray. The exit code is 1 where one of them is over
 * what is allowed. `MINETREE_CLI` names another `main.js` to measure, `CLIENTS_CAP` the seconds after which one is killed.
 *
 * @param wanted Parts of the names of attacks, as `mine, ARC`; all where there are none.
 */
export async function* clients(wanted: readonly string[] = []): AsyncGenerator<string> {
  const all = allAttacks()
  const isWanted = (attack: Attack): boolean =>
    wanted.length === 0 || attack.server === 'honest' || wanted.some((part) => nameOf(attack).includes(part))
  const targets = new Set(
    all.filter((each) => each.server !== 'honest' && isWanted(each)).map(({ target }) => target),
  )
  const chosen = all.filter((attack) => isWanted(attack) && targets.has(attack.target))
  const features = await featuresOf(MAIN)
  const honest = new Map<string, Measured>()
  if (chosen.length > 0) yield HEAD
  for (const attack of chosen) {
    const measured = await measure(attack, features)
    if (attack.server === 'honest') honest.set(kindOf(attack), measured)
    const beside = honest.get(kindOf(attack)) ?? measured
    const over = whatIsOver(measured, { beside, pays: attack.target === 'mine' })
    if (over.length > 0) process.exitCode = 1
    yield rowOf(attack, { measured, beside, over })
  }
  yield* pages(wanted)
}

/** What is compared: what a wallet does beside an honest wallet, everything else beside an honest run of its command. */
function kindOf({ target, server, deed }: Attack): string {
  return server === 'wallet' || deed === 'paid by a wallet' ? `${target}, wallet` : target
}

async function measure(attack: Attack, features: Features): Promise<Measured> {
  const stage = await Stage.open(features)
  try {
    const { args, env } = await attack.set(stage)
    const program = attack.target === 'client' ? clientProgram() : [MAIN]
    const end = await runClient({ program, args, env, folder: await stage.folder(), most: CAP })
    return {
      end,
      paid: stage.ledger.paid,
      mints: stage.ledger.signed.length,
      visits: stage.internal.requests.length,
      sent: stage.servers.reduce((sum, { sentBytes }) => sum + sentBytes, 0),
    }
  } finally {
    await stage.close()
  }
}

function clientProgram(): string[] {
  return ['--input-type=module', '-e', CLIENT_PROGRAM, '--', `file://${MAIN}`]
}

async function featuresOf(main: string): Promise<Features> {
  const stage = await Stage.open({ asksBeforePaying: false })
  try {
    const folder = await stage.folder()
    const { stdout } = await runClient({
      program: [main],
      args: ['mine', '--help'],
      env: {},
      folder,
      most: CAP,
    })
    return { asksBeforePaying: stdout.includes('--yes') }
  } finally {
    await stage.close()
  }
}

function whatIsOver(
  { end, paid, visits }: Measured,
  { beside, pays }: { beside: Measured; pays: boolean },
): string[] {
  return [
    ...(end.killed !== undefined ? [`killed for its ${end.killed}`] : []),
    ...(end.took > MOST_TIME ? ['time'] : []),
    ...(end.peak > MOST_MEMORY ? ['memory'] : []),
    ...(pays && paid > MOST_PAID * beside.paid ? ['fees'] : []),
    ...(visits > 0 ? ['internal host'] : []),
    ...(end.code === 1 && /\(unexpected/.test(end.stderr) ? ['unexpected error'] : []),
    ...(end.stderr.length > 20_000 ? ['output'] : []),
  ]
}

/** What a page measures beside its time and memory: how long it could do nothing else. */
async function* pages(wanted: readonly string[]): AsyncGenerator<string> {
  const isHonest = ({ server }: Attack): boolean => server === 'honest'
  const attacks = [
    ...HONEST_RESOLVING.filter(({ target }) => target === 'resolve'),
    ...resolveAttacks(),
  ].filter(
    (attack) =>
      isHonest(attack) || wanted.length === 0 || wanted.some((part) => pageName(attack).includes(part)),
  )
  if (attacks.every(isHonest)) return
  yield PAGES_HEAD
  const page = await ClientPage.open(MAIN)
  try {
    let beside: PageEnd | undefined
    for (const attack of attacks) {
      const stage = await Stage.open({ asksBeforePaying: false })
      try {
        const { args } = await attack.set(stage)
        const urls = args.slice(args.indexOf('--url') + 1)
        const end = await page.resolve({ urls, tip: formatOutpoint(TRUTH.tip), cap: CAP.time })
        beside ??= end
        yield pageRow(attack, { end, beside, visits: stage.internal.requests.length })
      } finally {
        await stage.close()
      }
    }
  } finally {
    await page.close()
  }
}

const pageName = ({ server, deed }: Attack): string => `browser, ${server}: ${deed}`

function pageRow(
  { server, deed }: Attack,
  { end, beside, visits }: { end: PageEnd; beside: PageEnd; visits: number },
): string {
  const { took, blocked, peak, found } = end
  const over = [
    ...(found === undefined ? ['killed'] : []),
    ...(took > MOST_TIME ? ['time'] : []),
    ...(peak > MOST_MEMORY ? ['memory'] : []),
    ...(blocked > MOST_BLOCKED ? ['blocked'] : []),
    ...(visits > 0 ? ['internal host'] : []),
    ...(found === false ? ['truth not found'] : []),
  ]
  if (over.length > 0) process.exitCode = 1
  const cells = [
    ...[
      'browser',
      server,
      deed,
      found === undefined ? `>${(took / 1000).toFixed(0)}` : (took / 1000).toFixed(1),
    ],
    ...[(took / beside.took).toFixed(1), (peak / MiB).toFixed(0), (peak / beside.peak).toFixed(1)],
    ...[blocked.toFixed(0), visits, over.length === 0 ? '' : `OVER: ${over.join(', ')}`],
  ]
  return `| ${cells.join(' | ')} |`
}

const PAGES_HEAD = `
  | page | server | deed | seconds | × honest | peak MiB | × honest | main thread blocked (ms) | internal requests | over |
  | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |`

const HEAD = `| command | server | deed | seconds | × honest | peak MiB | × honest | mints signed | satoshis paid | internal requests | sent MiB | exit | over |
  | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |`

function rowOf(
  attack: Attack,
  { measured, beside, over }: { measured: Measured; beside: Measured; over: string[] },
): string {
  const { end, paid, mints, visits, sent } = measured
  const seconds = (end.took / 1000).toFixed(1)
  const cells = [
    ...[attack.target, attack.server, attack.deed],
    ...[end.killed === 'time' ? `>${CAP.time / 1000}` : seconds, (end.took / beside.end.took).toFixed(1)],
    ...[(end.peak / MiB).toFixed(0), (end.peak / beside.end.peak).toFixed(1)],
    ...(attack.target === 'mine' ? [mints, paid] : ['', '']),
    ...[visits, (sent / MiB).toFixed(1), end.code ?? 'killed'],
    over.length === 0 ? '' : `OVER: ${over.join(', ')}`,
  ]
  return `| ${cells.join(' | ')} |`
}
