import { join } from 'node:path'
import { pino } from 'pino'
import { FACT } from '../../../../../backend/src/facts/log.js'
import { register, registerFact } from '../../../../../backend/src/facts/registers.js'
import { Pending, State } from '../../../../../backend/src/facts/state.js'
import { CHUNK_BYTES } from '../../../../../backend/src/graph/records.js'
import { concatBytes, utf8 } from '../../../../../backend/src/protocol/bytes.js'
import { encodePush, OP } from '../../../../../backend/src/protocol/script-walk.js'
import { storeFiles } from '../../../../../backend/src/writer/local-writer.js'
import { completeIndex } from '../../../../../src/server/store/facts/build-index.js'
import { copyLog } from '../../../../../src/server/store/facts/copy-log.js'
import { removeIndexes } from '../../../../../src/server/store/facts/folder.js'
import { purge } from '../../../../../src/server/store/facts/purge.js'
import { expectError } from '../../../../support/gateway/expect-error.js'
import {
  beefOf,
  bitcomTail,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../../../support/protocol/fake-chain.js'
import { AS_OPERATOR, OPERATOR, posted, treeOf, useServers } from '../../../../support/server/test-server.js'
import { checkedFacts, commandOptions, filesWith, inLog } from '../../../../support/storage/fact-store.js'

const servers = useServers()
const NOTE = utf8('what must not be found in any file of the store any more')
const LONG = concatBytes(new Uint8Array(CHUNK_BYTES - 9).fill(7), NOTE, new Uint8Array(CHUNK_BYTES).fill(8))
const IN_PIECES = utf8(`in pieces: ${'another text that must not be found'.repeat(20)}`)
const PIECE = 100

/** An envelope whose body is pushed in pieces, of which one is a number. */
function inPieces(body: Uint8Array): Uint8Array {
  const pushes: Uint8Array[] = []
  for (let at = 0; at < body.length; at += PIECE) pushes.push(encodePush(body.subarray(at, at + PIECE)))
  const whole = inscriptionScript({ contentType: 'text/plain', body: new Uint8Array(1) })
  // Before the push of one byte and the OP_ENDIF.
  return concatBytes(whole.subarray(0, -3), ...pushes, Uint8Array.of(OP.ONE + 4, OP.ENDIF))
}

const one = (lockingScript: Uint8Array, satoshis = 1) => ({ satoshis, lockingScript })
const noted = inscriptionScript({ contentType: 'text/plain', body: NOTE })

interface World {
  env: Record<string, string> & { DATA_DIR: string }
  chain: FakeChain
  /** In outputs 0 and 1, the second of which is no ordinal, and once more as B in output 2; output 3 has other content. */
  note: FakeTransaction
  /** Spends output 0 of it, unproven. */
  moved: FakeTransaction
  long: FakeTransaction
  pieces: FakeTransaction
}

async function world(): Promise<World> {
  const chain = new FakeChain()
  const env = {
    ...treeOf(chain.deployment),
    ...{ CHAIN_TRACKER: 'scripts-only', DATA_DIR: await servers.folder(), ...OPERATOR },
  }
  const other = inscriptionScript({ contentType: 'text/plain', body: utf8('other content') })
  const asB = concatBytes(p2pkh(3), bitcomTail(['19HxigV4QyBv3tHpQVcUEQyq1pzZVdoAut', NOTE, 'text/plain']))
  const funding = chain.spend({ outputs: [one(p2pkh(0), 9000)] })
  const note = chain.spend({
    inputs: [funding],
    outputs: [one(noted), one(noted, 5000), one(asB), one(other)],
  })
  const moved = chain.spend({ inputs: [note], outputs: [one(p2pkh(4))] })
  const long = chain.inscribe({ contentType: 'text/plain', body: LONG })
  const pieces = chain.spend({ outputs: [one(inPieces(IN_PIECES))] })
  const server = await servers.start(env)
  for (const each of [chain.genesis, chain.mint('a')]) await server.take(beefOf(each))
  for (const each of [note, long, pieces, moved])
    await server.take(beefOf(each, { with: [funding] }), ['tm_ordinals'])
  expect((await server.ask(`/svc/gateway/provenance/${moved.outpoint(0)}`)).status).toBe(200)
  await server.stop()
  return { env, chain, note, moved, long, pieces }
}

test('content is removed from every file, wherever it stands, and the index stays as it is', async () => {
  const { env, chain, note, long, pieces } = await world()
  const { DATA_DIR } = env
  const waiting = chain.spend({ outputs: [one(noted)] })
  const held = chain.spend({ outputs: [one(p2pkh(1)), one(noted)] })
  const bystander = chain.spend({ outputs: [one(p2pkh(1))] })
  inLog(DATA_DIR, (sql) => {
    const pending = new Pending(sql)
    pending.add(waiting, [], { isWaiting: true })
    pending.add(bystander, [], { isWaiting: false })
    // Deleted, and in a free page.
    for (let n = 0; n < 40; n++)
      pending.add({ ...waiting, txid: String(n).padStart(64, '0') }, [], { isWaiting: true })
    for (let n = 0; n < 40; n++) pending.delete(String(n).padStart(64, '0'))
    new State(sql).hold(
      { txid: held.txid, lock: { height: 9e6, time: 0 }, beef: beefOf(held) },
      { maxCount: 9 },
    )
  })
  expect(filesWith(DATA_DIR, NOTE)).not.toEqual([])
  const purged = await purge({ folder: DATA_DIR }, [{ txid: note.txid, vout: 0 }], 'an order')
  expect(purged).toMatchObject({
    outpoints: [0, 1, 2].map((vout) => note.outpoint(vout)),
    forgotten: [waiting.txid, held.txid],
    unread: [],
  })
  // What is longer, and has it in its middle, is another content.
  expect(filesWith(DATA_DIR, encodePush(NOTE))).toEqual([])
  expect(await checkedFacts(env)).toMatchObject({ damaged: [], isCompared: true })

  const both = [long, pieces].map(({ txid }) => ({ txid, vout: 0 }))
  expect((await purge({ folder: DATA_DIR }, both, 'another')).sha256).toHaveLength(2)
  expect(
    [NOTE, IN_PIECES, IN_PIECES.subarray(0, PIECE), IN_PIECES.subarray(-20)].map((each) =>
      filesWith(DATA_DIR, each),
    ),
  ).toEqual([[], [], [], []])
  inLog(DATA_DIR, (sql) => {
    expect(new Pending(sql).has(bystander.txid)).toBe(true)
    expect(sql.all('select 1 from log where kind = ?', FACT.body)).toEqual([])
  })
  expect(await checkedFacts(env)).toMatchObject({ damaged: [], isCompared: true })
  removeIndexes(DATA_DIR)
  await completeIndex(storeFiles(DATA_DIR).index, commandOptions(env))
  expect(await checkedFacts(env)).toMatchObject({ damaged: [], isCompared: true })
})

test('the same command again removes what a later transaction brought, and changes nothing else', async () => {
  const { env, note, chain } = await world()
  const outpoint = { txid: note.txid, vout: 0 }
  await purge({ folder: env.DATA_DIR }, [outpoint], 'an order')
  const facts = () => inLog(env.DATA_DIR, (sql) => sql.all('select seq from log').length)
  const before = facts()
  const all = [0, 1, 2].map((vout) => note.outpoint(vout))
  expect((await purge({ folder: env.DATA_DIR }, [outpoint], 'an order')).outpoints).toEqual(all)
  expect(facts()).toBe(before)
  const server = await servers.start(env)
  const late = chain.spend({ outputs: [one(noted)] })
  await server.take(beefOf(late), ['tm_ordinals'])
  expectError(await server.ask(`/content/${late.outpoint(0)}`), { status: 451, code: 'BLOCKED' })
  await server.stop()
  expect((await purge({ folder: env.DATA_DIR }, [outpoint], 'an order')).outpoints).toEqual([
    ...all,
    late.outpoint(0),
  ])
  expect(filesWith(env.DATA_DIR, encodePush(NOTE))).toEqual([])
})

test('what was purged is 451 for good, also once it is not blocked any more', async () => {
  const { env, note, moved } = await world()
  const { sha256 } = await purge({ folder: env.DATA_DIR }, [{ txid: note.txid, vout: 0 }], 'an order')
  const lines: string[] = []
  const logger = pino({ level: 'warn' }, { write: (line: string) => lines.push(line) })
  const server = await servers.start(env, { logger })
  const node = (graph: string, txid: string) =>
    posted({ graphID: `${graph}.0`, txid, outputIndex: 0 }, { 'x-bsv-topic': 'tm_ordinals' })
  const blocked = { status: 451, code: 'BLOCKED' } as const
  const unblock = posted({ sha256: sha256[0] }, AS_OPERATOR)
  for (const turn of ['blocked', 'not blocked']) {
    for (const path of [
      `/content/${note.outpoint(0)}`,
      `/content/${note.outpoint(0)}:-1`,
      `/svc/beef/${note.txid}`,
      `/svc/beef/${note.txid}/tx`,
      `/svc/gateway/provenance/${moved.outpoint(0)}`,
      `/svc/gateway/stream/${note.outpoint(0)}`,
    ])
      expect([path, (await server.ask(path)).status]).toEqual([path, 451])
    expectError(await server.ask('/requestForeignGASPNode', node(moved.txid, note.txid)), {
      ...blocked,
      overlay: true,
    })
    // What does not need the bytes is answered.
    expect((await server.ask('/requestForeignGASPNode', node(moved.txid, moved.txid))).status).toBe(200)
    expect((await server.ask(`/svc/txo/tx/${note.txid}`)).status).toBe(200)
    expect((await server.ask(`/svc/txo/tx/${moved.txid}?sats=true`)).json).toMatchObject([{ satoshis: 1 }])
    expect((await server.ask(`/svc/beef/${moved.txid}/tx`)).status).toBe(200)
    const found = (query: object) => server.ask('/lookup', posted({ service: 'ls_ordinals', query }))
    expect((await found({ outpoint: note.outpoint(0) })).status).toBe(451)
    const listed = (await found({ contentType: 'text/plain' })).json as { outputs: object[] }
    // That of `moved`, unless it shows blocked content; never output 3 of `note`.
    expect(listed.outputs).toHaveLength(turn === 'blocked' ? 0 : 1)
    if (turn === 'blocked')
      expect((await server.ask('/admin/unblock', unblock)).json).toMatchObject({ wasBlocked: true })
  }
  // Nothing new comes with it.
  await server.take(beefOf(note), ['tm_ordinals'])
  await server.stop()
  expect(filesWith(env.DATA_DIR, encodePush(NOTE))).toEqual([])
  expect(lines.filter((line) => /damaged/.test(line))).toEqual([])
})

/** Mints that hold content beside the name, in front of it, or none but the name. */
const MINTS: Record<string, { vout: number; mint: Parameters<FakeChain['mint']>[1] }> = {
  beside: { vout: 3, mint: { trailing: [one(noted), one(p2pkh(0), 900)] } },
  'in front of': { vout: 2, mint: { ownerLock: concatBytes(noted, p2pkh(2)) } },
  'that is': { vout: 2, mint: {} },
}

test.each(Object.keys(MINTS))('content %s a name is removed, and the tree goes on', async (where) => {
  const { vout, mint } = MINTS[where] as (typeof MINTS)[string]
  const chain = new FakeChain()
  const env = { ...treeOf(chain.deployment), CHAIN_TRACKER: 'scripts-only', DATA_DIR: await servers.folder() }
  const server = await servers.start(env)
  const holder = chain.mint('a', mint)
  for (const each of [chain.genesis, holder, chain.mint('ab')]) await server.take(beefOf(each))
  await server.stop()
  await purge({ folder: env.DATA_DIR }, [{ txid: holder.txid, vout }], 'an order')
  expect(filesWith(env.DATA_DIR, NOTE)).toEqual([])
  expect(await checkedFacts(env)).toMatchObject({ damaged: [], isCompared: true })
  removeIndexes(env.DATA_DIR)
  const again = await servers.start(env)
  const next = chain.mint('abc')
  await again.take(beefOf(next))
  const origin = await again.ask('/svc/names/origin/abc')
  expect(origin.json).toMatchObject({ outpoint: next.outpoint(2) })
})

test('a copy that was begun before is begun again', async () => {
  const { env, note } = await world()
  // More than one page.
  inLog(env.DATA_DIR, (sql, log) => {
    sql.exec('begin')
    for (let n = 1; n <= 1500; n++) log.insert(registerFact(register.sighting('ab'.repeat(32)), n, 'seen'))
    sql.exec('commit')
  })
  const to = join(await servers.folder(), 'copy')
  const stop = new AbortController()
  const copy = (onProgress: () => void) =>
    copyLog({ from: env.DATA_DIR, to, signal: stop.signal, onProgress })
  await expect(copy(() => stop.abort(new Error('stopped')))).rejects.toThrow('stopped')
  expect(filesWith(to, encodePush(NOTE))).toEqual(['log.db.part'])
  await purge({ folder: env.DATA_DIR }, [{ txid: note.txid, vout: 0 }], 'an order')
  await copyLog({ from: env.DATA_DIR, to, signal: new AbortController().signal, onProgress: () => {} })
  expect(filesWith(to, encodePush(NOTE))).toEqual([])
  expect(await checkedFacts({ ...env, DATA_DIR: to })).toMatchObject({ damaged: [] })
})
