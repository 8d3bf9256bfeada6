import { existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vi } from 'vitest'
import { BlockedError } from '../../../backend/src/graph/blocklist.js'
import { StoreUnavailableError } from '../../../backend/src/graph/errors.js'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { hostedIndex } from '../../../backend/src/host/hosted-index.js'
import { Spool } from '../../../backend/src/host/spool.js'
import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import { HostedDatabase, HostedProcess } from '../../support/plugin/hosted.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../../support/protocol/fake-chain.js'
import { encodeTransaction } from '../../support/protocol/raw-transaction.js'
import { eventually, hurry, loopTurns, until } from '../../support/server/waiting.js'

// How the index of a host follows its engine, whichever hook that calls, and when.

hurry(5)

/** Code, which has no place in the pushes that unlock a node. */
const OP_NOP = 0x61

const databases: HostedDatabase[] = []
const processes: HostedProcess[] = []
let folder = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'host-'))
  process.env.INDEX_DIR = join(folder, 'index')
})
afterEach(async () => {
  for (const each of processes.splice(0)) await each.end()
  for (const each of databases.splice(0)) await each.close()
})

async function openDatabase(options = {}): Promise<HostedDatabase> {
  const database = await HostedDatabase.open(folder, options)
  databases.push(database)
  return database
}

function start(
  database: HostedDatabase,
  chain: FakeChain,
  options: Partial<ConstructorParameters<typeof HostedProcess>[1]> = {},
): HostedProcess {
  const started = new HostedProcess(database, { deployment: chain.deployment, ...options })
  processes.push(started)
  return started
}

/** A process of a host over an empty database. */
async function started() {
  const chain = new FakeChain()
  const database = await openDatabase()
  return { chain, database, host: start(database, chain) }
}

async function end(process: HostedProcess): Promise<void> {
  processes.splice(processes.indexOf(process), 1)
  await process.end()
}

const factsIn = (database: HostedDatabase): Promise<number> =>
  database.count('select count(*) from minetree_log where kind = 1')

/** A transaction that burns an ordinal: its satoshi goes into a larger output, with the rest of a coin. */
function burning(chain: FakeChain, transaction: FakeTransaction, vout: number): FakeTransaction {
  const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: OPEN_LOCK }] })
  const inputs = [
    { transaction, vout },
    { transaction: coin, vout: 0 },
  ]
  return chain.spend({ inputs, outputs: [{ satoshis: 5, lockingScript: OPEN_LOCK }] })
}

/** A name, and a transaction that burns it right behind. */
function burntName(chain: FakeChain) {
  const mint = chain.mint('a', { ownerLock: OPEN_LOCK })
  const burn = burning(chain, mint, 2)
  const unproven = [mint]
  return {
    ...{ mint, burn, minted: beefOf(mint, { with: [chain.genesis], proven: false }) },
    burnt: beefOf(burn, { proven: false, with: [chain.genesis, mint], unproven }),
  }
}

describe('a burn for which the engine calls no hook', () => {
  test('counts once the engine has applied it', async () => {
    const { chain, database, host } = await started()
    const { mint, minted, burn, burnt } = burntName(chain)
    await host.submit(minted)
    expect(await host.found('names', { name: 'a' })).toEqual([mint.outpoint(2)])
    await host.ask(burnt)
    await database.apply(burn.txid)
    await until(async () => (await host.found('names', { name: 'a' })).length === 0, 'it is burnt')
  })

  test('counts after the process was killed before any hook, and nothing was sent again', async () => {
    const { chain, database, host } = await started()
    const { mint, minted, burn, burnt } = burntName(chain)
    await host.ask(minted)
    await host.ask(burnt)
    await end(host)
    for (const each of [mint, burn]) await database.apply(each.txid)
    const again = start(database, chain)
    await until(async () => (await again.found('names', { node: 'a' })).length === 1, 'the mint is there')
    await until(async () => (await again.found('names', { name: 'a' })).length === 0, 'it is burnt')
  })
})

test('what the engine refuses is no fact, also after a restart', async () => {
  const { chain, database, host } = await started()
  const refused = chain.inscribe({ contentType: 'text/plain', body: utf8('refused') })
  const taken = chain.inscribe({ contentType: 'text/plain', body: utf8('taken') })
  for (const each of [refused, taken]) await host.ask(beefOf(each))
  await end(host)
  const again = start(database, chain)
  await database.apply(taken.txid)
  await again.found('ordinals', { outpoint: taken.outpoint(0) })
  await until(async () => (await factsIn(database)) === 1, 'the one is a fact')
  expect(await again.found('ordinals', { outpoint: refused.outpoint(0) })).toEqual([])
  expect(await again.found('ordinals', { outpoint: taken.outpoint(0) })).toEqual([taken.outpoint(0)])
})

test('a proof that only topic managers have seen is none', async () => {
  const { chain, database, host } = await started()
  const note = chain.inscribe({ contentType: 'text/plain', body: utf8('forged') })
  await host.ask(beefOf(note))
  await host.hook(beefOf(note, { proven: false }))
  expect(await host.found('ordinals', { outpoint: note.outpoint(0) })).toEqual([note.outpoint(0)])
  expect(await database.count('select count(*) from minetree_log where kind = 2')).toBe(0)
  await host.hook(beefOf(note))
  expect(await database.count('select count(*) from minetree_log where kind = 2')).toBe(1)
})

describe('what a peer sends counts once it is verified here, as engines verify the last transaction of it alone', () => {
  /** A host that has a name, a forged transfer of it, and what holds. */
  async function attacked({
    isKnown = true,
    onForged = async () => false,
  }: {
    isKnown?: boolean
    onForged?: () => Promise<boolean>
  } = {}) {
    const chain = new FakeChain()
    const database = await openDatabase({ isKnown })
    const forged = new Set<string>()
    const isValidRootForHeight = async (root: string): Promise<boolean> =>
      forged.has(root) ? await onForged() : true
    const options = { chainTracker: { isValidRootForHeight, currentHeight: async () => 1 } }
    const host = start(database, chain, options)
    const mint = chain.mint('a')
    for (const each of [chain.genesis, mint]) await host.submit(beefOf(each))
    // Nobody has signed it, and a block that is none holds it.
    const theft = chain.move(mint, 2, OPEN_LOCK)
    forged.add(theft.txid)
    const [note, later] = ['sent', 'found'].map((text) =>
      chain.inscribe({ contentType: 'text/plain', body: utf8(text) }),
    ) as [FakeTransaction, FakeTransaction]
    const expectNoTheft = async (at: HostedProcess, known: FakeTransaction): Promise<void> => {
      const query = { outpoint: known.outpoint(0) }
      await until(async () => (await at.found('ordinals', query)).length === 1, 'what holds is there')
      expect(await at.found('names', { name: 'a' })).toEqual([mint.outpoint(2)])
    }
    return { chain, database, options, host, mint, theft, note, later, expectNoTheft }
  }

  test('also if it is shown again, once it was given up, in a mode in which engines verify what is submitted', async () => {
    const { database, host, mint, theft, note, expectNoTheft } = await attacked()
    for (const each of [theft, note]) {
      await database.keep(each.txid, beefOf(each))
      await database.apply(each.txid)
    }
    await host.ask(beefOf(theft, { proven: false, with: [mint] }), {}, 'historical-tx')
    await host.ask(beefOf(note), {}, 'historical-tx-no-spv')
    await expectNoTheft(host, note)
  })

  test('and while the chain tracker does not answer, what the engine has verified goes on', async () => {
    let isAsked = false
    const onForged = (): Promise<boolean> => {
      isAsked = true
      return new Promise(() => {})
    }
    const { chain, database, host, mint, theft } = await attacked({ onForged })
    await database.keep(theft.txid, beefOf(theft))
    await host.ask(beefOf(theft), {}, 'historical-tx-no-spv')
    await database.apply(theft.txid)
    await until(() => isAsked, 'the tracker is asked')
    const burn = burning(chain, mint, 2)
    await host.ask(beefOf(burn, { with: [mint] }))
    await database.apply(burn.txid)
    await until(async () => (await host.found('names', { name: 'a' })).length === 0, 'it is burnt')
  })

  test('and what is in the tables of the engine, also after a restart', async () => {
    const { chain, database, options, host, theft, note, later, expectNoTheft } = await attacked()
    for (const each of [theft, note, later]) {
      await database.keep(each.txid, beefOf(each))
      await database.admit(each.txid, { topic: 'tm_ordinals' })
      await database.apply(each.txid)
      if (each === later) continue
      await host.ask(beefOf(each), {}, 'historical-tx-no-spv')
      await host.hook(beefOf(each))
      await host.hookOf(each.txid)
    }
    await expectNoTheft(host, note)
    await end(host)
    await expectNoTheft(start(database, chain, options), later)
  })

  test.each([
    ['says that it has taken it', (host: HostedProcess, { txid }: FakeTransaction) => host.hookOf(txid)],
    ['passes it on', (host: HostedProcess, each: FakeTransaction) => host.hook(beefOf(each))],
    [
      'says what it spends',
      (host: HostedProcess, each: FakeTransaction) => host.spentBy(each.txid, beefOf(each)),
    ],
  ])('where an engine whose tables cannot be read %s', async (_, hook) => {
    const { host, theft, note, expectNoTheft } = await attacked({ isKnown: false })
    for (const each of [theft, note]) {
      for (const proven of [false, true]) await host.ask(beefOf(each, { proven }), {}, 'historical-tx-no-spv')
      await hook(host, each)
    }
    await expectNoTheft(host, note)
  })
})

describe('an engine whose tables can be read', () => {
  const noted = (chain: FakeChain, text: string) =>
    chain.inscribe({ contentType: 'text/plain', body: utf8(text) })
  const untilKnown = (host: HostedProcess) =>
    until(async () => host.ordinals.admissionMode === 'locking-script', 'the tables are known')

  const proofsIn = (database: HostedDatabase) =>
    database.count('select count(*) from minetree_log where kind = 2')

  test('is not to write transactions for hooks: it verifies what topic managers have seen, proofs too', async () => {
    const { chain, database, host } = await started()
    expect(host.ordinals.admissionMode).toBe('whole-tx')
    await untilKnown(host)
    expect([host.names.admissionMode, host.ordinals.spendNotificationMode]).toEqual([
      'locking-script',
      'txid',
    ])
    const note = noted(chain, 'a note')
    await host.ask(beefOf(note))
    await host.hookOf(note.txid)
    expect(await host.found('ordinals', { outpoint: note.outpoint(0) })).toEqual([note.outpoint(0)])
    expect(await proofsIn(database)).toBe(1)
    // It keeps none of what admits nothing.
    const burn = burning(chain, note, 0)
    await host.ask(beefOf(burn))
    await host.spentBy(burn.txid)
    await database.apply(burn.txid)
    await until(async () => (await proofsIn(database)) === 2, 'the burn is there with its proof')
  })

  test('says which one of several it has verified', async () => {
    const { chain, database, host } = await started()
    await untilKnown(host)
    const [note, child] = [noted(chain, 'forged'), noted(chain, 'verified')]
    const [proven, unproven] = [true, false].map(
      (is) => (each: FakeTransaction) => beefOf(each, { proven: is }),
    ) as [typeof beefOf, typeof beefOf]
    for (const beef of [unproven(note), proven(note), unproven(child), proven(child)]) await host.ask(beef)
    await database.keep(note.txid, unproven(note))
    await host.hookOf(note.txid)
    expect(await host.found('ordinals', { outpoint: note.outpoint(0) })).toEqual([note.outpoint(0)])
    expect(await proofsIn(database)).toBe(0)
    await database.keep(child.txid, proven(child))
    await host.hookOf(child.txid)
    expect(await proofsIn(database)).toBe(1)
  })

  test('says so also of what came by another process, whatever this one has seen', async () => {
    const { chain, database, host } = await started()
    await untilKnown(host)
    const note = noted(chain, 'forged')
    await host.ask(beefOf(note))
    await database.keep(note.txid, beefOf(note, { proven: false }))
    await database.apply(note.txid)
    await until(async () => (await factsIn(database)) === 1, 'it is a fact')
    expect(await proofsIn(database)).toBe(0)
  })

  test('and that keeps transactions elsewhere is to bring them', async () => {
    const { chain, database, host } = await started()
    await untilKnown(host)
    const note = noted(chain, 'elsewhere')
    for (const proven of [true, false]) await host.ask(beefOf(note, { proven }))
    await host.hookOf(note.txid)
    expect(await host.found('ordinals', { outpoint: note.outpoint(0) })).toEqual([note.outpoint(0)])
    expect(await proofsIn(database)).toBe(0)
    expect(host.ordinals.admissionMode).toBe('whole-tx')
  })

  test('is asked again if it could not be asked', async () => {
    const { chain, database, host } = await started()
    await untilKnown(host)
    const note = noted(chain, 'asked again')
    await database.keep(note.txid, beefOf(note))
    database.watch = (sql) => {
      if (sql.includes('select beef')) throw new Error('away')
    }
    await host.hookOf(note.txid)
    expect(await host.found('ordinals', { outpoint: note.outpoint(0) })).toEqual([])
    database.watch = () => {}
    await database.apply(note.txid)
    const isFound = async () => (await host.found('ordinals', { outpoint: note.outpoint(0) })).length === 1
    await until(isFound, 'it is there')
  })
})

test('a dry run leaves nothing', async () => {
  const { chain, host } = await started()
  const note = chain.inscribe({ contentType: 'text/plain', body: utf8('dry') })
  await host.found('names', { node: '' })
  await host.ask(beefOf(note), { dryRun: true })
  expect(spooledIn(folder)).toEqual([])
  await host.ask(beefOf(note))
  expect(spooledIn(folder)).toEqual([note.txid])
})

/** What the processes of a host have seen, and not recorded. */
function spooledIn(place: string): string[] {
  return readdirSync(join(place, 'index')).flatMap((name) => {
    const spool = new Spool(join(place, 'index', name))
    try {
      return spool.txids()
    } finally {
      spool.close()
    }
  })
}

test('a mint that nodes disagree about is neither kept nor stored until it is mined', async () => {
  const { chain, database, host } = await started()
  const loose = chain.mint('a', { unlockingScript: (script) => concatBytes(script, Uint8Array.of(OP_NOP)) })
  const beef = (proven: boolean): Uint8Array => beefOf(loose, { proven, with: [chain.genesis] })
  expect(await host.ask(beef(false))).toEqual([[], []])
  await host.hook(beef(false))
  expect(await factsIn(database)).toBe(0)
  expect(await host.ask(beef(true))).toEqual([[0, 1, 2], expect.arrayContaining([2])])
  await host.hook(beef(true))
  expect(await host.found('names', { name: 'a' })).toEqual([loose.outpoint(2)])
})

test('what no block can hold is no fact, whatever the engine applies', async () => {
  const { chain, database, host } = await started()
  const coin = chain.inscribe({ contentType: 'text/plain', body: utf8('a coin') })
  const from = { transaction: coin, vout: 0 }
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8('on no chain') })
  const twice = chain.spend({ inputs: [from, from], outputs: [{ satoshis: 2, lockingScript }] })
  const sound = chain.inscribe({ contentType: 'text/plain', body: utf8('on a chain') })
  const raw = encodeTransaction({
    inputs: [{ outpoint: { txid: coin.txid, vout: 0 }, unlockingScript: Uint8Array.of(0x51) }],
    outputs: [{ satoshis: 1, lockingScript: Uint8Array.of(0x51, 0x51, 0x51) }],
  })
  expect(raw).toHaveLength(64)
  const transaction = readTransaction(raw)
  const innerNode = { ...twice, txid: transaction.txid, raw, transaction }
  const beefs = [
    beefOf(twice, { proven: false, with: [coin] }),
    beefOf(innerNode, { with: [coin] }),
    beefOf(sound, { proven: false }),
  ]
  for (const beef of beefs) await host.ask(beef)
  for (const { txid } of [twice, innerNode, sound]) await database.apply(txid)
  const found = ({ txid }: FakeTransaction) => host.found('ordinals', { outpoint: `${txid}_0` })
  await until(async () => (await found(sound)).length === 1, 'the other one is')
  for (const beef of beefs) await host.hook(beef)
  for (const each of [twice, innerNode]) expect(await found(each)).toEqual([])
})

/** Names, an inscription that moves on, and one that is burnt. */
function scenario(chain: FakeChain): Uint8Array[] {
  const note = chain.inscribe({ contentType: 'text/plain', body: utf8('is burnt'), lock: OPEN_LOCK })
  const burn = burning(chain, note, 0)
  const moved = chain.inscribe({ contentType: 'text/plain', body: utf8('moves'), lock: OPEN_LOCK })
  const inputs = [{ transaction: moved, vout: 0 }]
  const move = chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript: OPEN_LOCK }] })
  return [
    ...[chain.genesis, ...chain.mintAll('ab'), note].map((each) => beefOf(each)),
    ...[beefOf(burn, { with: [note] }), beefOf(moved), beefOf(move, { with: [moved] })],
  ]
}

test('whatever statement the database refuses, all that hooks brought is there later', async () => {
  /** Has hooks bring all while one of the statements is refused; gives how many there were. */
  const bring = async (failing: number): Promise<number> => {
    const chain = new FakeChain()
    const place = join(folder, String(failing))
    mkdirSync(place)
    const database = await HostedDatabase.open(place)
    let inserts = 0
    database.watch = (sql) => {
      if (sql.startsWith('insert into minetree_log ') && ++inserts === failing)
        throw new Error('the database is away')
    }
    const host = new HostedProcess(database, { deployment: chain.deployment })
    try {
      for (const beef of scenario(chain)) await host.submit(beef)
      await until(async () => (await factsIn(database)) === 7, 'all are facts')
      expect(await host.found('names', { prefix: '' })).toHaveLength(2)
      expect(await host.found('names', { node: 'ab' })).toHaveLength(1)
    } finally {
      await host.end()
      await database.close()
    }
    return inserts
  }
  const statements = await bring(0)
  const refused = Array.from({ length: Math.ceil(statements / 3) }, (_, at) => 1 + 3 * at)
  await Promise.all(refused.map(bring))
})

test('what hooks brought while the database was away is there after a restart', async () => {
  const { chain, database, host } = await started()
  await host.found('names', { node: '' })
  database.watch = () => {
    throw new Error('the database is away')
  }
  const beefs = scenario(chain)
  // Each waits for the index to be opened again.
  await Promise.all(beefs.map((beef) => host.submit(beef)))
  const ab = readBeef(beefs[2] ?? new Uint8Array()).subject
  await host.names.outputEvicted(ab.txid, 1)
  expect(host.failures.length).toBeGreaterThan(0)
  await end(host)
  database.watch = () => {}
  expect(await factsIn(database)).toBe(0)
  const again = start(database, chain)
  await again.found('names', { prefix: '' })
  await until(async () => (await factsIn(database)) === 7, 'all are facts')
  await eventually(() => expect(again.found('names', { node: 'ab' })).rejects.toThrow('has blocked'))
})

test('a submission that cannot be read keeps no other from being recorded', async () => {
  const { chain, database, host } = await started()
  await host.found('names', { node: '' })
  await end(host)
  const [name = ''] = readdirSync(join(folder, 'index'))
  const spool = new Spool(join(folder, 'index', name))
  spool.verify('00'.repeat(32), utf8('no BEEF'))
  const note = chain.inscribe({ contentType: 'text/plain', body: utf8('readable') })
  spool.verify(note.txid, beefOf(note))
  spool.close()
  const again = start(database, chain)
  await again.found('names', { node: '' })
  await until(async () => (await factsIn(database)) === 1, 'the other is a fact')
  expect(again.failures).toContainEqual(expect.objectContaining({ code: 'BAD_BEEF' }))
})

describe('where the storage of the engine cannot be read', () => {
  const scripts = { isValidRootForHeight: async () => true, currentHeight: async () => 1000 }

  async function afterRestart(
    isInChain: boolean,
    make: (chain: FakeChain) => Uint8Array,
  ): Promise<{ database: HostedDatabase; host: HostedProcess }> {
    const chain = new FakeChain()
    const database = await openDatabase({ isKnown: false })
    const host = start(database, chain)
    await host.ask(make(chain))
    await end(host)
    const chainTracker = { ...scripts, isValidRootForHeight: async () => isInChain }
    const again = start(database, chain, { chainTracker: chainTracker as never })
    await again.found('names', { node: '' })
    return { database, host: again }
  }

  test('what was not confirmed before a restart is verified', async () => {
    const { database } = await afterRestart(true, (chain) => beefOf(chain.genesis))
    await until(async () => (await factsIn(database)) === 1, 'it is a fact')
    expect(await database.count('select count(*) from minetree_log where kind = 2')).toBe(1)
  })

  test('a proof that the chain does not have makes no fact', async () => {
    const { database, host } = await afterRestart(false, (chain) => beefOf(chain.genesis))
    const chain = new FakeChain()
    const note = chain.inscribe({ contentType: 'text/plain', body: utf8('verified') })
    await host.hook(beefOf(note))
    await loopTurns()
    expect(await factsIn(database)).toBe(1)
  })
})

describe('what an engine stored before it was killed', () => {
  test('is caught up with, a transaction at a time, whatever the order', async () => {
    const chain = new FakeChain()
    const database = await openDatabase()
    const { genesis } = chain
    const [a, ab] = [chain.mint('a'), chain.mint('ab')]
    for (const each of [genesis, a, ab]) await database.keep(each.txid, beefOf(each))
    await database.admit(ab.txid, { vout: 1, topic: 'tm_opns' })
    await database.admit(ab.txid, { vout: 2 })
    await database.admit(genesis.txid, {})
    await database.admit(a.txid, { topic: 'tm_others' })
    const host = start(database, chain)
    expect(await host.found('names', { name: 'ab' })).toEqual([])
    await until(async () => (await host.found('names', { node: '' })).length === 1, 'the genesis is there')
    await end(host)
    await database.admit(a.txid, { vout: 2 })
    const again = start(database, chain)
    await until(async () => (await again.found('names', { name: 'ab' })).length === 1, 'all is there')
  })

  test('also what a chain tracker could not be asked about before a restart', async () => {
    const chain = new FakeChain()
    const database = await openDatabase()
    await database.keep(chain.genesis.txid, beefOf(chain.genesis))
    await database.admit(chain.genesis.txid, { id: 1 })
    await database.run(
      `with recursive n(id) as (select 10 union all select id + 1 from n where id < 2500)
       insert into outputs (id, txid, outputIndex, topic) select id, '${'ab'.repeat(32)}', id, 'tm_names' from n`,
    )
    let asked = 0
    const away = async (): Promise<boolean> => {
      asked++
      throw new Error('away')
    }
    const tracker = { currentHeight: async () => chain.genesis.height }
    const host = start(database, chain, { chainTracker: { ...tracker, isValidRootForHeight: away } })
    await host.found('names', { node: '' })
    const place = (): Promise<string | undefined> => host.store.settings.get('engine outputs of tm_names')
    await until(async () => asked > 1 || (await place())?.startsWith('2500 ') === true, 'it is asked')
    await end(host)
    const again = start(database, chain, {
      chainTracker: { ...tracker, isValidRootForHeight: async () => true },
    })
    await until(async () => (await again.found('names', { node: '' })).length === 1, 'the genesis is there')
  })

  test('in many pages, and an id that became visible late', async () => {
    const chain = new FakeChain()
    const database = await openDatabase()
    const { genesis } = chain
    const [a, b] = [chain.mint('a'), chain.mint('b')]
    for (const each of [genesis, a, b]) await database.keep(each.txid, beefOf(each))
    await database.run(
      `with recursive n(id) as (select 10 union all select id + 1 from n where id < 2500)
       insert into outputs (id, txid, outputIndex, topic) select id, '${'ab'.repeat(32)}', id, 'tm_names' from n`,
    )
    await database.admit(genesis.txid, { id: 2501 })
    const host = start(database, chain)
    await until(async () => (await host.found('names', { node: '' })).length === 1, 'the genesis is there')
    await end(host)
    await database.run('delete from outputs where id = 2400')
    await database.admit(a.txid, { id: 2400 })
    await database.admit(b.txid, { id: 1 })
    const again = start(database, chain)
    await until(async () => (await again.found('names', { node: 'a' })).length === 1, 'it is there')
    expect(await again.found('names', { node: 'b' })).toEqual([])
  })
})

describe('the folder of the index', () => {
  test('two processes share one, and see what the other writes', async () => {
    const chain = new FakeChain()
    const database = await openDatabase()
    const hosts = [start(database, chain), start(database, chain)]
    for (const each of hosts) await each.found('names', { node: '' })
    expect(readdirSync(join(folder, 'index'))).toHaveLength(2)
    const [one, other] = hosts as [HostedProcess, HostedProcess]
    await one.submit(beefOf(chain.genesis))
    await until(async () => (await other.found('names', { node: '' })).length === 1, 'it is there')
    await other.submit(beefOf(chain.mint('a')))
    await until(async () => (await one.found('names', { name: 'a' })).length === 1, 'it is there, too')
  })

  test('if it cannot be used, one line says so, and nothing of an answer is lost', async () => {
    const chain = new FakeChain()
    const database = await openDatabase()
    writeFileSync(join(folder, 'file'), '')
    process.env.INDEX_DIR = join(folder, 'file')
    const host = start(database, chain)
    await expect(host.found('names', { node: '' })).rejects.toThrow('set INDEX_DIR')
    expect(await host.ask(beefOf(chain.genesis))).toEqual([[0], [0]])
    expect(existsSync(join(folder, 'index'))).toBe(false)
  })
})

test.each(['application/name-claim', 'application/other'])(
  'a host without services of names derives what others over its database have of them, names being %s',
  async (nameContentType) => {
    const chain = new FakeChain({ nameContentType })
    const database = await openDatabase()
    const [one, two] = ['one', 'two'].map((name) => () => {
      process.env.INDEX_DIR = join(folder, name)
      return start(database, chain)
    }) as [() => HostedProcess, () => HostedProcess]
    const first = one()
    for (const each of [chain.genesis, chain.mint('a')]) await first.submit(beefOf(each))
    await end(first)
    const second = two()
    const mint = chain.mint('ab')
    await second.submit(beefOf(mint))
    await end(second)
    process.env.INDEX_DIR = join(folder, 'one')
    const index = hostedIndex(database.connection())
    index.users++
    await index.ready()
    expect(index.store.names.originOf('ab')).toEqual({ txid: mint.txid, vout: 2 })
    await index.close()
  },
)

test.each([
  ['version of a covenant', { covenantVersion: 2 as const }],
  ['limits', { limits: { nameBytes: 0, nameScriptBytes: 0 } }],
])('whatever %s hosts name, all derive by those of the log', async (_, other) => {
  const chain = new FakeChain({ covenantVersion: 1 })
  const database = await openDatabase()
  const hosts = [{}, other].map((own, at) => {
    process.env.INDEX_DIR = join(folder, String(at))
    return start(database, chain, { deployment: { ...chain.deployment, ...own } })
  }) as [HostedProcess, HostedProcess]
  const mint = chain.mint('a', { lockTime: 1 })
  for (const each of [chain.genesis, mint]) await hosts[0].submit(beefOf(each))
  for (const each of hosts)
    await until(async () => (await each.found('names', { name: 'a' })).length === 1, 'it is there')
})

test('a host without a tree stores no mint that nodes disagree about, as one may be pinned later', async () => {
  const chain = new FakeChain()
  const database = await openDatabase()
  const index = hostedIndex(database.connection())
  index.users++
  const loose = chain.mint('a', { unlockingScript: (script) => concatBytes(script, Uint8Array.of(OP_NOP)) })
  const moved = chain.move(loose, 2, OPEN_LOCK)
  const bring = async (...[subject, options]: Parameters<typeof beefOf>): Promise<number> => {
    const atomicBEEF = [...beefOf(subject, { proven: false, ...options })]
    await index.admitted({ mode: 'whole-tx', atomicBEEF, outputIndex: 0, topic: 'tm_ordinals' })
    return await factsIn(database)
  }
  expect(await bring(loose, { with: [chain.genesis] })).toBe(0)
  // What a mined transaction spends is mined as well.
  const next = chain.move(moved, 0, OPEN_LOCK)
  expect(await bring(next, { with: [chain.genesis, loose, moved], unproven: [loose] })).toBeGreaterThan(0)
  await index.close()
})

test('a host without services of names derives everything again by the tree that another process pins', async () => {
  const chain = new FakeChain()
  const database = await openDatabase()
  const index = hostedIndex(database.connection())
  index.users++
  const mint = chain.mint('a')
  const atomicBEEF = [...beefOf(mint)]
  await index.admitted({ mode: 'whole-tx', atomicBEEF, outputIndex: 0, topic: 'tm_ordinals' })
  expect(index.store.names.originOf('a')).toBeUndefined()
  process.env.INDEX_DIR = join(folder, 'other')
  await start(database, chain).submit(beefOf(chain.genesis))
  await until(async () => {
    await index.store.opened?.()
    return index.store.names.originOf('a') !== undefined
  }, 'the name is there')
  await index.close()
})

test('a database user who may not create tables is told which grant is missing', async () => {
  const chain = new FakeChain()
  const database = await openDatabase()
  database.watch = (sql) => {
    if (!sql.startsWith('create table')) return
    const message = "CREATE command denied to user 'host'@'%' for table `overlay`.`minetree_log`"
    throw Object.assign(new Error(message), { code: 'ER_TABLEACCESS_DENIED_ERROR' })
  }
  const host = start(database, chain)
  await expect(host.found('names', { node: '' })).rejects.toThrow(
    'the database user may not CREATE: grant it SELECT, INSERT, UPDATE, DELETE and CREATE on that database',
  )
})

test('what went wrong is said in one line, whatever statement the database adds to it', async () => {
  const index = hostedIndex((await openDatabase()).connection())
  const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  onTestFinished(() => written.mockRestore())
  index.report(new Error('may not CREATE (create table\n    minetree_log)'))
  expect(written).toHaveBeenCalledWith('minetree: may not CREATE (create table minetree_log)\n')
  index.users++
  await index.close()
})

test('asking whether a job is its own opens an index again that has ended, and until then it is not', async () => {
  const database = await openDatabase()
  const connection = database.connection()
  const index = hostedIndex(connection)
  index.users++
  try {
    index.seekJobs(['follow'])
    await index.ready()
    await until(() => index.isMine('follow'), 'it has the job')
    database.watch = (sql) => {
      if (sql.includes('into minetree_log_meta')) throw new Error('away')
    }
    // It is opened again to say by what proofs count.
    hostedIndex(connection, { tracker: 'tracker', onFailure: () => {} })
    await expect(index.ready()).rejects.toThrow('away')
    expect(index.isMine('follow')).toBe(false)
    database.watch = () => {}
    await until(() => index.isMine('follow'), 'it has the job again')
  } finally {
    await index.close()
  }
})

test('what is read at once throws until the index is open, which what is written first opens', async () => {
  const index = hostedIndex((await openDatabase()).connection())
  const { store } = index
  expect(() => store.served.names.originOf('a')).toThrow(StoreUnavailableError)
  expect(() => store.blocklist.list()).toThrow(StoreUnavailableError)
  await store.blocklist.add({ kind: 'name', value: 'a', reason: 'a test', since: 1 })
  expect(() => store.served.names.originOf('a')).toThrow(BlockedError)
  expect(store.names.originOf('a')).toBeUndefined()
  index.users++
  await index.close()
})
