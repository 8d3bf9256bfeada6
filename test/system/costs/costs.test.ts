import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { builtPackage } from '../../support/cli/built-package.js'
import { sampleOf } from '../../support/nightly.js'
import { ask, untilReady } from '../../support/server/test-server.js'
import type { Attack } from './attack.js'
import { type AttackedServer, startAttackedServer } from './attacked-server.js'
import { bodyAttacks } from './attacks/bodies.js'
import { graphAttacks } from './attacks/graphs.js'
import { metadataAttacks } from './attacks/metadata.js'
import { largeAttacks, readAttacks } from './attacks/reads.js'
import { scriptAttacks } from './attacks/scripts.js'
import { type FilledStore, fillStore } from './fixture.js'
import { HonestSubmissions } from './honest.js'
import { withProvenBlocks } from './proven-blocks.js'
import { type Outcome, Stranger } from './send.js'

const MiB = 1024 * 1024
/** What the server may take, whatever it is asked: the promise of `docs/settings.md`. */
const MEMORY = 1024 * MiB

/** The attacks of `npm run bench costs`, smaller: what they do to a host does not hang on a clock, but on their shape. */
const SUITES: Record<string, { attacks: Attack[]; connections: number }> = {
  bodies: { attacks: bodyAttacks({ bytes: 24 * MiB, slowness: 1 }), connections: 8 },
  graphs: {
    attacks: graphAttacks({
      ...{ parts: 1500, transactions: 1000, depth: 100, pending: 100, steps: 100 },
      ...{ largeBytes: 8 * MiB, leaves: 30_000, mintOutputs: 20_000, mintInputs: 12_000 },
    }),
    connections: 3,
  },
  scripts: { attacks: scriptAttacks({ parts: 1000 }), connections: 2 },
  metadata: {
    attacks: metadataAttacks({ jsonBytes: 6 * MiB, addedBytes: 2 * MiB, keys: 5000, listed: 50 }),
    connections: 4,
  },
  reads: {
    attacks: readAttacks({ steps: 200, chunks: 200, names: 60, directoryBytes: 128 * 1024 }),
    connections: 20,
  },
  'large transactions': { attacks: largeAttacks({ largeBytes: 8 * MiB }), connections: 4 },
}

const ATTACKER = '127.0.0.66'
/** Readers come from an address each: one alone may ask for so many pages a minute. */
let readers = 0
const nextReader = (): string => `127.0.1.${++readers}`
/** How often a reader has to be answered while a request is worked on that takes as long as this many reads. */
const READS_MEANWHILE = 3
const LONG = 60

describe.each(Object.entries(SUITES))('next to hostile %s', (_, { attacks: all, connections }) => {
  const attacks = sampleOf(all, 12)
  const checked = attacks.filter(({ checksProofs }) => checksProofs === true)
  const plain = attacks.filter((attack) => !checked.includes(attack))
  const honest = new HonestSubmissions()
  let folder = ''
  let server: AttackedServer
  let filled: FilledStore[] = []

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'minetree-costs-'))
    filled = await fillStore(plain, join(folder, 'store'))
    server = await start(filled[0])
  })
  afterAll(async () => {
    await server?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  test.each(plain.map((attack, at) => ({ name: attack.name, at, attack })))(
    '$name',
    async ({ at, attack }) => {
      await hold({ server, attack, filled: filledAt(filled, at), connections, honest })
    },
  )

  for (const attack of checked) {
    test(attack.name, async () => {
      const [store] = await fillStore([attack], join(folder, attack.name))
      await withProvenBlocks(async (settings) => {
        const own = await start(store, settings)
        try {
          await untilReady({ ask: (path) => ask(own.url, path) })
          const honest = new HonestSubmissions()
          await hold({ server: own, attack, filled: filledAt([store], 0), connections, honest })
        } finally {
          await own.stop()
        }
      })
    })
  }
})

async function start(
  store: FilledStore | undefined,
  env: Record<string, string> = {},
): Promise<AttackedServer> {
  const main = join(await builtPackage(), 'dist/cli/main.js')
  return await startAttackedServer({ main, env: { ...store?.env, ...env } })
}

function filledAt(filled: readonly (FilledStore | undefined)[], at: number): FilledStore {
  const store = filled[at]
  if (store === undefined) throw new Error('no store was filled for this attack')
  return store
}

/** The server lives through an attack, answers others meanwhile, and takes no more memory than it may. */
async function hold(options: {
  server: AttackedServer
  attack: Attack
  filled: FilledStore
  connections: number
  honest: HonestSubmissions
}): Promise<void> {
  const { server, attack, filled, honest } = options
  const connections = Math.min(options.connections, attack.allowance.connections)
  const read = { path: filled.readPath }
  const stranger = new Stranger(server.url, { address: ATTACKER, connections })
  const reader = new Stranger(server.url, { address: nextReader(), connections: 1 })
  server.forgetPeak()

  const aloneAt = (at: number) => beside(reader, read, () => stranger.send(filled.requestOf(at)), attack)
  let alone = await aloneAt(0)
  const heldUpReaders = (): boolean =>
    alone.outcome === 200 && alone.lasted > LONG * alone.aRead && alone.reads < READS_MEANWHILE
  // The machine may hold up both for as long, but not each time.
  for (let more = 1; more <= 3 && heldUpReaders(); more++) alone = await aloneAt(connections + more)
  expect(heldUpReaders()).toBe(false)

  const outcomes = await sendTogether(stranger, { attack, filled, connections })
  // On a connection of its own: the other one may have been idle for longer than it is kept.
  const later = new Stranger(server.url, { address: nextReader(), connections: 1 })
  const after = await later.send(read)
  expect({ after, isRunning: server.isRunning() }).toEqual({ after: 200, isRunning: true })
  for (const outcome of [alone.outcome, ...outcomes]) expect(attack.statuses).toContain(outcome)
  expect(await later.send(honest.next())).toBe(200)
  expect(server.peakMemory()).toBeLessThan(MEMORY)
  reader.leave()
  later.leave()
}

/** Reads over and over while a hostile request is under way. */
async function beside(
  reader: Stranger,
  read: { path: string },
  hostile: () => Promise<Outcome>,
  { statuses }: Attack,
): Promise<{ outcome: Outcome; reads: number; lasted: number; aRead: number }> {
  const before = performance.now()
  for (let warm = 0; warm < 10; warm++) await reader.send(read)
  const aRead = (performance.now() - before) / 10
  if (statuses.includes('held')) return { outcome: 'held', reads: 0, lasted: 0, aRead }
  let outcome: Outcome | undefined
  const since = performance.now()
  let lasted = 0
  const answered = hostile().then((came) => {
    outcome = came
    lasted = performance.now() - since
  })
  let reads = 0
  while (outcome === undefined) {
    await reader.send(read)
    if (outcome === undefined) reads++
  }
  await answered
  return { outcome: outcome ?? 'lost', reads, lasted, aRead }
}

/** As often as there are connections, and hung up on where nothing else is to come. */
async function sendTogether(
  stranger: Stranger,
  { attack, filled, connections }: { attack: Attack; filled: FilledStore; connections: number },
): Promise<Outcome[]> {
  const sent = Array.from({ length: connections }, (_, at) => stranger.send(filled.requestOf(at + 1)))
  if (attack.statuses.includes('held')) {
    const reader = Promise.race([Promise.all(sent), stranger.sentAll()])
    await reader
    stranger.leave()
  }
  const outcomes = await Promise.all(sent)
  stranger.leave()
  return outcomes
}
