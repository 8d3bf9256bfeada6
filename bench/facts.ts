import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { MerklePath, Spend, Transaction } from '@bsv/sdk'
import { TOPICS } from '../backend/src/protocol/profile.js'
import { storeFiles } from '../backend/src/writer/local-writer.js'
import { type Node, openNode } from '../src/server/node.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
  p2pkh,
} from '../test/support/protocol/fake-chain.js'
import { mainnetTransaction, mainnetVectors } from '../test/support/protocol/mainnet-vectors.js'
import {
  LARGE_BYTES,
  type NetworkIndex,
  networkIn,
  STREAM_CHUNK,
  STREAM_CHUNKS,
  TRANSACTIONS,
  withNetworkFolder,
} from './facts-network.js'
import type { Filled, ReadTimes, Rebuilt, Serving, Task } from './facts-process.js'
import { compareWithBare } from './gateway.js'
import { PARTS_ALONE, startOf } from './start.js'
import {
  configFor,
  LIVE_CODE_SIZE,
  linesOf,
  median,
  SILENT,
  settingsFor,
  sizeOf,
  spent,
  withFolder,
} from './support.js'

/** How many transactions of each kind are measured, and how many warm up before them, until code is compiled. */
const COUNT = 300
const WARMING = 4000
const A_TURN = 50
const ROUNDS = 5
const BODY = 4096
/**
 * How long an idle node is watched, and the delay before that, in milliseconds: V8 collects the garbage of a start once, some 15
 * seconds after it.
 */
const IDLE = 20_000
const SETTLING = 25_000
const RANGE = 100 * 1024
const STARTS = 5
/**
 * What the SDK took to interpret a real mint where the goals in times were set, in milliseconds of CPU. The same interpretation is
 * measured before each part, and its goals are multiplied by how much longer it takes here: a machine is not as fast all day.
 */
const INTERPRETED = 5.06
let pace = 1

/** The parts, in the order in which they run: `npm run bench facts store reads` runs two. Those of the second list share a network. */
const PARTS = { store, submissions, disk }
const NETWORK_PARTS = { rebuild, reads, idle, serving, 'first-read': firstRead, starting: start }

/**
 * The embedded store: CPU and bytes to store and to submit transactions, to derive the index of a mixed network, to read, to run
 * idle, to send long answers, and to start, with the first read. The goals are shares of what the store before this one took,
 * which kept tables by knex, on two cores at 2.6 GHz.
 */
export async function* facts(wanted: readonly string[] = []): AsyncGenerator<string> {
  const isWanted = (part: string): boolean => wanted.length === 0 || wanted.includes(part)
  for (const [part, run] of Object.entries(PARTS)) if (isWanted(part)) yield* paced(run)
  const parts = Object.entries(NETWORK_PARTS).filter(([part]) => isWanted(part))
  if (parts.length === 0) return
  const runs = parts.map(([, run]) => run)
  yield* withNetworkFolder((folder) => inNetwork(folder, runs))
}

/** Runs a part after measuring {@link INTERPRETED}. Without the real mints its goals stay as they were set. */
async function* paced(run: () => AsyncGenerator<string>): AsyncGenerator<string> {
  const interpret = realMint()
  if (interpret !== undefined) {
    const times: number[] = []
    for (let turn = 0; turn < 3 * A_TURN; turn++) times.push((await spent(interpret)).cpu)
    const here = median(times.slice(A_TURN))
    pace = here / INTERPRETED
    yield `the SDK interprets a mint in ${here.toFixed(2)} ms of CPU: ${pace.toFixed(2)} times as long as where the goals were set`
  }
  yield* run()
}

/** A network on disk, and a store that has it. */
interface World {
  network: string
  about: NetworkIndex
  store: string
}

async function* inNetwork(
  folder: string,
  parts: ((world: World) => AsyncGenerator<string>)[],
): AsyncGenerator<string> {
  const network = join(folder, `network-${TRANSACTIONS}`)
  const world: World = { network, about: networkIn(network), store: join(folder, `store-${TRANSACTIONS}`) }
  if (!existsSync(world.store)) {
    mkdirSync(world.store)
    const { cpu } = await runTask<Filled>('fill', world).catch((error: unknown) => {
      rmSync(world.store, { recursive: true })
      throw error
    })
    const { count } = world.about
    yield line(`stored, 500 a commit: a transaction of ${count}`, cpu / count, {
      unit: 'ms of CPU',
      digits: 3,
    })
  }
  for (const part of parts) yield* paced(() => part(world))
}

/** Runs a task in a separate process, to its end. */
async function runTask<Result>(task: Task, world: World): Promise<Result> {
  const child = startTask(task, world)
  try {
    const [result] = (await Promise.race([once(child, 'message'), failed(child)])) as [Result]
    return result
  } finally {
    await ended(child)
  }
}

function startTask(task: Task, { network, store }: World): ChildProcess {
  const file = new URL('./facts-process.js', import.meta.url)
  const profile = process.env.BENCH_PROFILES
  return fork(file, [task, network, store], {
    execArgv: ['--expose-gc', ...(profile ? ['--cpu-prof', `--cpu-prof-dir=${join(profile, task)}`] : [])],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
}

async function failed(child: ChildProcess): Promise<never> {
  const [code] = await once(child, 'exit')
  throw new Error(`a process of the bench ended with ${code}`)
}

async function ended(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit')
  if (child.exitCode === null && child.kill()) await exit
}

interface Coin {
  transaction: FakeTransaction
  vout: number
}

interface Kind {
  /** Transactions to submit, in order, each with the others in its BEEF. */
  transactions: { transaction: FakeTransaction; with: FakeTransaction[] }[]
}

/** {@link WARMING} and {@link COUNT} transactions of each kind, and the ones that they spend. */
function kindsOf(chain: FakeChain): { setup: FakeTransaction[]; kinds: Record<string, Kind> } {
  const numbers = Array.from({ length: WARMING + COUNT }, (_, number) => number)
  /** Coins, a hundred per transaction: with more, that transaction would be most of a BEEF. */
  const purse = (satoshis: number, lockingScript: Uint8Array): Coin[] => {
    const outputs = Array.from({ length: 100 }, () => ({ satoshis, lockingScript }))
    const fans = Array.from({ length: numbers.length / outputs.length }, () =>
      chain.spend({ inputs: [], outputs }),
    )
    return fans.flatMap((transaction) => outputs.map((_, vout) => ({ transaction, vout })))
  }
  const [free, locked] = [purse(1000, OPEN_LOCK), purse(5000, p2pkh(0))]
  const inscribed = free.map((coin) => {
    const lockingScript = inscriptionScript({ contentType: 'image/png', body: randomBytes(BODY) })
    const inputs = [coin]
    return chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] })
  })
  let tip = inscribed[0] as FakeTransaction
  const steps = numbers.map((number) => {
    const outputs = [{ satoshis: 1, lockingScript: p2pkh(2 + (number % 3)) }]
    tip = chain.spend({ inputs: [{ transaction: tip, vout: 0 }], outputs })
    return tip
  })
  const known = new Map([[chain.genesis.txid, chain.genesis]])
  const mints = namesOf(WARMING + COUNT).map((name, at) => {
    const mint = chain.mint(name, { funding: [locked[at] as Coin] })
    known.set(mint.txid, mint)
    return { transaction: mint, with: [known.get(mint.transaction.inputs[0]?.txid ?? '') ?? []].flat() }
  })
  const kinds: Record<string, Kind> = {
    mint: { transactions: mints },
    'inscription of 4 KiB': {
      transactions: inscribed.map((transaction, at) => ({
        transaction,
        with: [(free[at] as Coin).transaction],
      })),
    },
    step: { transactions: steps.map((transaction) => ({ transaction, with: [] })) },
  }
  const fans = new Set([...free, ...locked].map(({ transaction }) => transaction))
  return { setup: [chain.genesis, ...fans], kinds }
}

/**
 * Names that can be minted one after another: each, except the first of a letter, extends an earlier one, up to 20 characters.
 */
function namesOf(count: number): string[] {
  const letters = [...'abcdefghijklmnopqrstuvwxyz']
  const pairs = letters.flatMap((first) => letters.map((second) => first + second))
  const long = pairs.flatMap((pair) => Array.from({ length: 19 }, (_, more) => pair + 'n'.repeat(more)))
  return [...letters, ...long].slice(0, count)
}

/** Runs on an open node. */
async function withNode<Result>(
  chain: FakeChain,
  run: (node: Node, folder: string) => Promise<Result>,
): Promise<Result> {
  return await withFolder(async (folder) => {
    const node = await openNode({ config: configFor(chain, folder), logger: SILENT })
    try {
      return await run(node, folder)
    } finally {
      await node.close()
    }
  })
}

async function write({ graph }: Node, transactions: FakeTransaction[]): Promise<void> {
  const records = transactions.map(provenRecord)
  await graph.record(records, { subjects: transactions.map(({ txid }) => txid) })
}

/** CPU to store proven transactions: one alone, durable before the next one, and many in one write. */
async function* store(): AsyncGenerator<string> {
  const wanted: Record<string, number> = { mint: 1.37, 'inscription of 4 KiB': 0.74, step: 0.6 }
  for (const many of [1, A_TURN]) {
    const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
    const { setup, kinds } = kindsOf(chain)
    const lines = await withNode(chain, async (node) => {
      for (const transaction of setup) await write(node, [transaction])
      const found: string[] = []
      for (const [kind, { transactions }] of Object.entries(kinds)) {
        const all = transactions.map(({ transaction }) => transaction)
        const cpu = await timeOfEach(all, async (some) => {
          for (let at = 0; at < some.length; at += many) await write(node, some.slice(at, at + many))
        })
        const most = many === 1 ? wanted[kind] : undefined
        found.push(line(`stored, ${many} a commit: ${kind}`, cpu, { unit: 'ms of CPU', most }))
      }
      return found
    })
    yield* lines
  }
}

/** CPU to submit a proven transaction, so that no script runs; a mint is compared with the SDK's interpretation of one. */
async function* submissions(): AsyncGenerator<string> {
  const wanted: Record<string, number> = { mint: 2.25, 'inscription of 4 KiB': 1.55, step: 1.1 }
  const interpret = realMint()
  const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
  const { setup, kinds } = kindsOf(chain)
  const topics = Object.values(TOPICS)
  const lines = await withNode(chain, async ({ overlay }) => {
    for (const transaction of setup) await overlay.engine.submit({ beef: beefOf(transaction), topics })
    const found: string[] = []
    for (const [kind, { transactions }] of Object.entries(kinds)) {
      const beefs = transactions.map(({ transaction, with: others }) => beefOf(transaction, { with: others }))
      const cpu = await timeOfEach(beefs, async (some) => {
        for (const beef of some) await overlay.engine.submit({ beef, topics })
      })
      const goal = { unit: 'ms of CPU', most: wanted[kind] }
      found.push(line(`submitted, one at a time: ${kind}`, cpu, goal))
      if (kind !== 'mint' || interpret === undefined) continue
      const interpreting: number[] = []
      for (let turn = 0; turn < 2 * A_TURN; turn++) interpreting.push((await spent(interpret)).cpu)
      const base = interpreting.slice(A_TURN).reduce((sum, each) => sum + each, 0) / A_TURN
      found.push(
        `a mint against the SDK's interpretation of it (${base.toFixed(2)} ms): ${(cpu / base).toFixed(2)} (wanted: 0.4)`,
      )
    }
    return found
  })
  yield* lines
}

/** Interprets the second of the real mints, which spends an output of the first. */
function realMint(): (() => void) | undefined {
  const [first, second] = mainnetVectors()?.mineTree.mints.map(({ txid }) => mainnetTransaction(txid)) ?? []
  if (first === undefined || second === undefined) return undefined
  const [source, transaction] = [first, second].map(({ raw }) => Transaction.fromBinary(raw))
  const inputIndex = second.inputs.findIndex(({ txid }) => txid === first.txid)
  const input = transaction?.inputs[inputIndex]
  const spent = input && source?.outputs[input.sourceOutputIndex]
  if (transaction === undefined || input?.unlockingScript === undefined || spent?.satoshis === undefined) {
    throw new Error('the second real mint does not spend the first')
  }
  const { unlockingScript, sourceOutputIndex, sequence = 0xffffffff } = input
  const spend = {
    sourceTXID: first.txid,
    sourceOutputIndex,
    sourceSatoshis: spent.satoshis,
    lockingScript: spent.lockingScript,
    transactionVersion: transaction.version,
    otherInputs: transaction.inputs.filter((_, index) => index !== inputIndex),
    unlockingScript,
    inputSequence: sequence,
    inputIndex,
    outputs: transaction.outputs,
    lockTime: transaction.lockTime,
  }
  return () => {
    if (!new Spend(spend).validate()) throw new Error('the interpreter refuses a real mint')
  }
}

/** The disk space of a proven inscription of 4 KiB beyond its content, in bytes. */
async function* disk(): AsyncGenerator<string> {
  const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
  const { setup, kinds } = kindsOf(chain)
  const inscriptions = kinds['inscription of 4 KiB']?.transactions.map(({ transaction }) => transaction) ?? []
  const bytes = await withNode(chain, async (node, folder) => {
    for (const each of [...setup, ...inscriptions.slice(0, WARMING)]) await write(node, [each])
    const before = sizeOf(folder)
    for (const each of inscriptions.slice(WARMING)) await write(node, [each])
    return (sizeOf(folder) - before) / COUNT - BODY
  })
  yield line('on disk, an inscription of 4 KiB beyond its content', bytes, {
    unit: 'bytes',
    digits: 0,
    most: 1500,
  })
}

/** CPU per item, in milliseconds: the median of the turns after the first {@link WARMING} items. */
async function timeOfEach<Item>(items: Item[], run: (some: Item[]) => Promise<void>): Promise<number> {
  const times: number[] = []
  for (let at = 0; at < items.length; at += A_TURN) {
    const { cpu } = await spent(() => run(items.slice(at, at + A_TURN)))
    if (at >= WARMING) times.push(cpu / A_TURN)
  }
  return median(times)
}

async function* rebuild(world: World): AsyncGenerator<string> {
  const { count } = world.about
  const { cpu, wall, peak, sizes } = await runTask<Rebuilt>('rebuild', world)
  const what = `index of ${count} transactions derived again`
  yield line(`${what}: each`, cpu / count, { unit: 'ms of CPU', digits: 3, most: 0.4 })
  yield line(`${what}: whole`, wall / 1000, { unit: 's', digits: 1 })
  yield line(`${what}: most memory`, peak / 2 ** 20, { unit: 'MiB', digits: 0, most: 400 })
  const files = Object.entries(sizes).map(([file, bytes]) => `${file} ${(bytes / count).toFixed(0)}`)
  yield `bytes of a transaction by file: ${files.join(', ')} (wanted: the index 600)`
}

/** Reads of the store, without the server's caches. */
async function* reads(world: World): AsyncGenerator<string> {
  const times: ReadTimes[] = []
  const child = startTask('read', world)
  try {
    await Promise.race([once(child, 'message'), failed(child)])
    for (let round = 0; round < ROUNDS; round++) {
      child.send('again')
      const [found] = (await once(child, 'message')) as [ReadTimes]
      times.push(found)
    }
  } finally {
    await ended(child)
  }
  const wanted: Record<string, number> = {
    'tip of the long ordinal': 34,
    'name to tip': 35,
    'merged MAP of the long ordinal': 119,
  }
  for (const what of Object.keys(times[0] ?? {})) {
    const each = median(times.map((round) => round[what] ?? Number.NaN))
    yield line(`read: ${what}`, each, { unit: 'µs of CPU', digits: 0, most: wanted[what] })
  }
}

/** The share of a core that a server without sources and requests uses. */
async function* idle(world: World): AsyncGenerator<string> {
  const share = await serve(world, async (_, child) => {
    await sleep(SETTLING)
    const before = await cpuOf(child)
    await sleep(IDLE)
    return ((await cpuOf(child)) - before) / IDLE / 10
  })
  yield line('an idle node', share, { unit: '% of a core', digits: 2, most: 0.2 })
}

/** Long answers, compared with `node:http` and the same bytes. */
async function* serving(world: World): AsyncGenerator<string> {
  yield* await serve(world, async ({ url }, server) => {
    const { large, stream } = world.about
    const from = Math.floor((STREAM_CHUNKS * STREAM_CHUNK) / 2) - RANGE / 3
    const headers = { Range: `bytes=${Math.floor(from)}-${Math.floor(from) + RANGE - 1}` }
    const compared = compareWithBare('node', {
      '10 MiB by outpoint': {
        target: { origin: url, server, paths: [`/content/${large}`], length: LARGE_BYTES },
        wanted: 0.5,
      },
      '100 KiB in the middle of a stream': {
        target: { origin: url, server, paths: [`/svc/gateway/stream/${stream}`], length: RANGE, headers },
        wanted: 0.25,
      },
    })
    return await linesOf(compared)
  })
}

/** The first answer of a server that has just started, for the tip of an ordinal, alternating with `node:http` alone. */
async function* firstRead(world: World): AsyncGenerator<string> {
  const { long, moved } = world.about
  const goal = { unit: 'ms', digits: 1 }
  const bare: number[] = []
  for (const [what, outpoint] of Object.entries({ 'a short life': moved[0], 'a long life': long })) {
    const times: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      times.push(await serve(world, ({ url }) => firstAnswer(`${url}/content/${outpoint}:-1`)))
      bare.push(await serve(world, ({ url }) => firstAnswer(url), 'bare'))
    }
    yield line(`first read, the tip of an ordinal with ${what}`, median(times), { ...goal, most: 5 })
  }
  yield line('first answer of `node:http` alone', median(bare), goal)
}

/** The time for an answer of a server that has just started, in milliseconds. */
async function firstAnswer(url: string): Promise<number> {
  await sleep(500)
  const since = performance.now()
  const [answer] = await once(get(url), 'response')
  await answer.resume().toArray()
  if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}`)
  return performance.now() - since
}

/** A start over the network, with the command line that was built last. */
async function* start(world: World): AsyncGenerator<string> {
  const main = new URL('../../cli/main.js', import.meta.url).pathname
  if (!existsSync(main)) {
    yield 'start: left out: it needs the command line as `npm run build` makes it'
    return
  }
  const env = settingsFor(world.about, world.store, { LOG_LEVEL: 'info' })
  const parts = { parameters: ['-e', PARTS_ALONE], env: { FILE: storeFiles(world.store).index } }
  const starts = []
  const floors = []
  for (let round = 0; round < STARTS; round++) {
    starts.push(await startOf({ parameters: [main, 'serve'], env }))
    floors.push(await startOf(parts))
  }
  const ready = median(starts.map(({ ready }) => ready))
  const memory = median(starts.map((each) => each.memory))
  yield line('from a start until it is ready', ready, { unit: 'ms', digits: 0, most: 300 })
  yield line('memory at rest', memory, { unit: 'MiB', digits: 0, most: 80 })
  const floor = median(floors.map((each) => each.memory))
  yield line('of a bare Express server, and a thread, each with the index open', floor, {
    unit: 'MiB',
    digits: 0,
  })
}

async function serve<Result>(
  world: World,
  run: (serving: Serving, server: ChildProcess) => Promise<Result>,
  task: Task = 'serve',
): Promise<Result> {
  const child = startTask(task, world)
  try {
    const [ready] = (await Promise.race([once(child, 'message'), failed(child)])) as [Serving]
    return await run(ready, child)
  } finally {
    await ended(child)
  }
}

/** The processor time of a process, in microseconds. */
async function cpuOf(child: ChildProcess): Promise<number> {
  child.send('cpu')
  const [{ user, system }] = (await once(child, 'message')) as [NodeJS.CpuUsage]
  return user + system
}

/** @param options.most The goal, for a time at the pace of {@link INTERPRETED}. */
function line(
  what: string,
  figure: number,
  { unit, digits = 2, most }: { unit: string; digits?: number; most?: number | undefined },
): string {
  const goal = most === undefined || !/^[mµ]s/.test(unit) ? most : (most * pace).toFixed(digits)
  return `${what}: ${figure.toFixed(digits)} ${unit}${goal === undefined ? '' : ` (wanted: ${goal})`}`
}

function provenRecord({ txid, raw, height }: FakeTransaction): {
  txid: string
  raw: Uint8Array
  proof: { merklePath: Uint8Array; height: number; root: string }
} {
  const path = new MerklePath(height, [[{ offset: 0, hash: txid, txid: true }]])
  return { txid, raw, proof: { merklePath: Uint8Array.from(path.toBinary()), height, root: txid } }
}
