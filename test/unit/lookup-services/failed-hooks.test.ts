import { Engine } from '@bsv/overlay'
import type { Backlog, GraphStore } from '../../../backend/src/graph/graph-store.js'
import type { FailedHook, HookOutbox } from '../../../backend/src/graph/hook-outbox.js'
import type { AdmissionRecord, GraphRecords } from '../../../backend/src/graph/records.js'
import { type HookFailure, HookRetries } from '../../../backend/src/lookup-services/hook-retries.js'
import type { RetryOptions } from '../../../backend/src/lookup-services/hooks.js'
import { NamesLookupService } from '../../../backend/src/lookup-services/NamesLookupService.js'
import { OrdinalsLookupService } from '../../../backend/src/lookup-services/OrdinalsLookupService.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { type Outpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { sqlDatabase } from '../../../backend/src/storage/sql/rows.js'
import { StoredHookOutbox } from '../../../backend/src/storage/write/hook-outbox.js'
import NamesTopicManager from '../../../backend/src/topic-managers/NamesTopicManager.js'
import OrdinalsTopicManager from '../../../backend/src/topic-managers/OrdinalsTopicManager.js'
import { beefOf, FakeChain, p2pkh } from '../../support/protocol/fake-chain.js'
import { eventually } from '../../support/server/waiting.js'
import { MemoryStorage } from '../../support/storage/memory-storage.js'
import type { OpenedSqlStore } from '../../support/storage/sql-store.js'
import { closeStores, openStore } from '../../support/storage/stores.js'

// As a plugin: the engine and its storage are a host's, and our tables are filled by the hooks alone.

const closing: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const close of closing.splice(0)) await close()
  await closeStores()
})

/** A writer that fails at the calls that `fails` picks. */
class FailingWriter
  implements Pick<GraphStore, 'record' | 'evict' | 'backlog' | 'sightings' | 'transactions'>
{
  calls = 0
  done = 0

  constructor(
    private readonly to: GraphStore,
    public fails: (call: number) => boolean,
  ) {}

  async record(records: GraphRecords): Promise<AdmissionRecord[]> {
    return await this.attempt(() => this.to.record(records))
  }

  get backlog(): Backlog {
    return this.to.backlog
  }

  get transactions(): GraphStore['transactions'] {
    return this.to.transactions
  }

  get sightings(): GraphStore['sightings'] {
    const { sightings } = this.to
    return {
      of: (txids) => sightings.of(txids),
      record: (records, options) => this.attempt(() => sightings.record(records, options)),
    }
  }

  async evict(outpoint: Outpoint): Promise<void> {
    await this.attempt(() => this.to.evict(outpoint))
  }

  private async attempt<Result>(write: () => Promise<Result>): Promise<Result> {
    if (this.fails(++this.calls)) throw new Error('deadlock found')
    const result = await write()
    this.done++
    return result
  }
}

const QUICK = { soon: 5, longest: 20, idle: 20 }

/** A plugin's services over a store. */
function services(options: {
  opened: OpenedSqlStore
  chain: FakeChain
  fails?: (call: number) => boolean
  retries?: Partial<RetryOptions>
}) {
  const { opened, chain, fails = () => false } = options
  const { store, database } = opened
  const failures: HookFailure[] = []
  const writer = new FailingWriter(store, fails)
  const retries: RetryOptions = {
    outbox: new StoredHookOutbox(sqlDatabase(database)),
    onHookFailure: (failure) => failures.push(failure),
    times: QUICK,
    ...options.retries,
  }
  const { deployment } = chain
  const names = new NamesLookupService({ reader: store, writer, deployment, retries })
  const ordinals = new OrdinalsLookupService({ reader: store, writer, retries })
  const close = async (): Promise<void> => {
    await Promise.all([names.close(), ordinals.close()])
  }
  closing.unshift(close)
  return { names, ordinals, writer, failures, close }
}

/** Names, an inscription that moves on, and one that is burnt: as BEEF, parents first. */
function scenario(chain: FakeChain): Uint8Array[] {
  const note = chain.inscribe({ contentType: 'text/plain', body: utf8('moves') })
  const output = { satoshis: 1, lockingScript: p2pkh(7) }
  const moved = chain.spend({ inputs: [{ transaction: note, vout: 0 }], outputs: [output] })
  const burnt = chain.inscribe({ contentType: 'text/plain', body: utf8('is burnt') })
  const burn = chain.spend({
    inputs: [{ transaction: burnt, vout: 0 }],
    outputs: [{ ...output, satoshis: 5 }],
  })
  return [
    beefOf(chain.genesis),
    ...chain.mintAll('ab').map((mint) => beefOf(mint)),
    beefOf(note),
    beefOf(moved, { with: [note] }),
    beefOf(burnt),
    beefOf(burn, { with: [burnt] }),
  ]
}

/** How many records the hooks make of it: 12 of outputs that are admitted, and two of ordinals that are spent. */
const RECORDS = 14

/** The engine as a host runs it. */
function stockEngine(
  chain: FakeChain,
  lookupServices: Pick<ReturnType<typeof services>, 'names' | 'ordinals'>,
) {
  const engine = new Engine(
    {
      tm_names: new NamesTopicManager({ deployment: chain.deployment }),
      tm_ordinals: new OrdinalsTopicManager(),
    },
    { ls_names: lookupServices.names, ls_ordinals: lookupServices.ordinals },
    new MemoryStorage(),
    'scripts only',
  )
  engine.logger = Object.assign(Object.create(console), { error: () => {}, warn: () => {} })
  return async (beefs: Uint8Array[]): Promise<void> => {
    for (const beef of beefs)
      await engine.submit({ beef: Array.from(beef), topics: ['tm_names', 'tm_ordinals'] })
  }
}

async function undisturbed(): Promise<Record<string, string[]>> {
  const chain = new FakeChain()
  const opened = await openStore()
  const plugin = services({ opened, chain })
  await stockEngine(chain, plugin)(scenario(chain))
  // The engine does not wait for the notices of spends.
  await eventually(async () => expect(plugin.writer.done).toBe(RECORDS))

  return await opened.rows()
}

test('whichever record a hook fails at, it is kept in the outbox and repeated, and the tables are those of a run in which none fails', async () => {
  const rows = await undisturbed()
  for (let failing = 1; failing <= RECORDS; failing++) {
    const chain = new FakeChain()
    const opened = await openStore()
    const plugin = services({ opened, chain, fails: (call) => call === failing })
    await stockEngine(chain, plugin)(scenario(chain))
    await eventually(async () => expect(await opened.rows()).toEqual(rows))
    expect(plugin.failures).toMatchObject([{ kept: 'outbox' }])
    await plugin.close()
  }
})

test('failed hooks are repeated after a restart, with one row for each hook and one BEEF for each transaction', async () => {
  const rows = await undisturbed()
  const chain = new FakeChain()
  const opened = await openStore()
  const failing = services({ opened, chain, fails: () => true })
  await stockEngine(chain, failing)(scenario(chain))
  await eventually(async () => expect((await opened.rows()).graph_hook_notes).toHaveLength(RECORDS))
  await failing.close()
  const noted = await opened.rows()
  expect(noted.graph_outputs).toEqual([])
  const beefs = new Set(noted.graph_hook_notes?.map((row) => JSON.parse(row).beef))
  // Six transactions that admit something, in both topics where they are mints, and one that burns an ordinal.
  expect(beefs.size).toBe(7)
  expect(new Set(noted.graph_pieces?.map((row) => JSON.parse(row).owner)).size).toBe(7)
  const again = services({ opened, chain })
  await eventually(async () => expect(await opened.rows()).toEqual(rows))
  expect(again.failures).toEqual([])
})

test('a hook that fails for ever keeps no other from being repeated', async () => {
  const rows = await undisturbed()
  const chain = new FakeChain()
  const opened = await openStore()
  const notes = new StoredHookOutbox(sqlDatabase(opened.database))
  const nothing: FailedHook = {
    service: 'ls_ordinals',
    hook: 'admitted',
    topic: 'tm_ordinals',
    outpoint: { txid: '00'.repeat(32), vout: 0 },
    beef: utf8('no BEEF'),
  }
  await notes.keep(nothing)
  const failing = services({ opened, chain, fails: (call) => call < 60 })
  await stockEngine(chain, failing)(scenario(chain))
  await eventually(async () => {
    const { graph_hook_notes, graph_pieces, ...graph } = await opened.rows()
    expect(graph_hook_notes).toHaveLength(1)
    expect(graph_pieces).toHaveLength((rows.graph_pieces?.length ?? 0) + 1)
    expect({ ...graph, graph_pieces: [], graph_hook_notes: [] }).toEqual({
      ...rows,
      graph_pieces: [],
      graph_hook_notes: [],
    })
  })
  await notes.release(nothing)
  expect(await opened.rows()).toEqual(rows)
})

test('an eviction that fails is repeated', async () => {
  const chain = new FakeChain()
  const opened = await openStore()
  const plugin = services({ opened, chain })
  const [, , , note = new Uint8Array()] = scenario(chain)
  await stockEngine(chain, plugin)([note])
  const [row = ''] = (await opened.rows()).graph_outputs ?? []
  const outpoint = parseOutpoint(`${JSON.parse(row).txid}_${JSON.parse(row).vout}`)
  plugin.writer.fails = (call) => call === 2
  plugin.writer.calls = 1
  await plugin.ordinals.outputEvicted(outpoint.txid, outpoint.vout)
  await eventually(async () => {
    const { graph_blocked, graph_hook_notes } = await opened.rows()
    expect(graph_hook_notes).toEqual([])
    expect(graph_blocked).toEqual([expect.stringContaining(outpoint.txid)])
  })
  expect(plugin.failures).toMatchObject([{ failed: { hook: 'evicted', outpoint }, kept: 'outbox' }])
})

describe('while the outbox cannot be written', () => {
  /** An outbox that cannot be written while `away`. */
  function unwritable(to: HookOutbox): HookOutbox & { away: boolean } {
    const reach = (): void => {
      if (notes.away) throw new Error('the database is away')
    }
    const notes = {
      away: true,
      async keep(note: FailedHook) {
        reach()
        await to.keep(note)
      },
      async *kept(service: string) {
        reach()
        yield* to.kept(service)
      },
      async release(note: FailedHook) {
        reach()
        await to.release(note)
      },
    }
    return notes
  }

  test('the hook throws, for the host to log it, and is repeated from memory when the database is back', async () => {
    const chain = new FakeChain()
    const opened = await openStore()
    const outbox = unwritable(new StoredHookOutbox(sqlDatabase(opened.database)))
    const plugin = services({ opened, chain, fails: () => outbox.away, retries: { outbox } })
    const submit = stockEngine(chain, plugin)
    await expect(submit([beefOf(chain.genesis)])).rejects.toThrow('deadlock found')
    expect(plugin.failures[0]).toMatchObject({ kept: 'in memory', failed: { hook: 'admitted' } })
    expect((await opened.rows()).graph_nodes).toEqual([])
    outbox.away = false
    await eventually(async () => expect((await opened.rows()).graph_nodes).toHaveLength(1))
    expect((await opened.rows()).graph_hook_notes).toEqual([])
  })

  test('memory holds no more than its limit, and what does not fit is reported as lost', async () => {
    const failures: HookFailure[] = []
    const { database } = await openStore()
    const hooks = new HookRetries({
      service: 'ls_names',
      outbox: unwritable(new StoredHookOutbox(sqlDatabase(database))),
      retry: async () => {},
      onHookFailure: (failure) => failures.push(failure),
    })
    const beef = new Uint8Array(40 * 1024 * 1024)
    const failing = async (vout: number): Promise<void> => {
      const note: FailedHook = {
        service: 'ls_names',
        hook: 'admitted',
        topic: 'tm_names',
        outpoint: { txid: 'ab'.repeat(32), vout },
        beef,
      }
      const work = hooks.run(
        () => note,
        async () => {
          throw new Error('no')
        },
      )
      await expect(work).rejects.toThrow('no')
    }
    for (const vout of [0, 0, 1]) await failing(vout)
    expect(failures.map(({ kept }) => kept)).toEqual(['in memory', 'in memory', 'lost'])
    await hooks.close()
  })
})
