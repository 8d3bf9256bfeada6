import { cpSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Sql } from '../../../../../backend/src/facts/connection.js'
import { LocalLog } from '../../../../../backend/src/facts/local-log.js'
import { FACT } from '../../../../../backend/src/facts/log.js'
import { readRegisterFact } from '../../../../../backend/src/facts/registers.js'
import { Pending, STATE_SCHEMA } from '../../../../../backend/src/facts/state.js'
import { CHUNK_BYTES } from '../../../../../backend/src/graph/records.js'
import { concatBytes, utf8 } from '../../../../../backend/src/protocol/bytes.js'
import { encodePush, OP } from '../../../../../backend/src/protocol/script-walk.js'
import { imagesFolder, storeFiles } from '../../../../../backend/src/writer/local-writer.js'
import { stateRows } from '../../../../../backend/src/writer/state-changes.js'
import { LogCheck } from '../../../../../src/server/store/facts/check-facts.js'
import { purgeLog } from '../../../../../src/server/store/facts/purge.js'
import { MemoryLog, type MemoryRows } from '../../../../support/facts/memory-log.js'
import { recordOf } from '../../../../support/protocol/block.js'
import {
  beefOf,
  bitcomTail,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
  p2pkh,
} from '../../../../support/protocol/fake-chain.js'
import { filesWith } from '../../../../support/storage/fact-store.js'
import { type Gateway, Gateways, submit } from '../../../../support/writer/gateways.js'

const NOTE = utf8('what must not be found in any log or copy of it any more')
const IN_PIECES = utf8(`in pieces: ${'another text that must not be found'.repeat(20)}`)
const LONG = concatBytes(
  new Uint8Array(CHUNK_BYTES - 9).fill(7),
  utf8('the middle of a long body'),
  new Uint8Array(CHUNK_BYTES).fill(8),
)
const PIECE = 100

/** An envelope whose body is pushed in pieces: it is a fact of its own. */
function inPieces(body: Uint8Array): Uint8Array {
  const pushes: Uint8Array[] = []
  for (let at = 0; at < body.length; at += PIECE) pushes.push(encodePush(body.subarray(at, at + PIECE)))
  const whole = inscriptionScript({ contentType: 'text/plain', body: new Uint8Array(1) })
  return concatBytes(whole.subarray(0, -3), ...pushes, Uint8Array.of(OP.ENDIF))
}

const text = (body: Uint8Array): Uint8Array => inscriptionScript({ contentType: 'text/plain', body })
const one = (lockingScript: Uint8Array, satoshis = 1) => ({ satoshis, lockingScript })

interface World {
  rows: MemoryRows
  gateways: Gateways
  note: FakeTransaction
  long: FakeTransaction
  pieces: FakeTransaction
  /** Built on the note. */
  moved: FakeTransaction
}

let opened: Gateways | undefined
afterEach(async () => {
  await opened?.close()
  opened = undefined
})

async function twoGateways() {
  const chain = new FakeChain()
  const rows: MemoryRows = { id: 'log', rows: [] }
  const gateways = new Gateways(chain)
  opened = gateways
  for (let count = 0; count < 2; count++) await gateways.add(new MemoryLog(rows))
  const [first, second] = gateways.all as [Gateway, Gateway]
  return { chain, rows, gateways, first, second }
}

/** Two gateways over a log in which the content stands in every way. */
async function world(): Promise<World> {
  const { chain, rows, gateways, first, second } = await twoGateways()
  const funding = chain.spend({ outputs: [one(OPEN_LOCK, 9000)] })
  const asB = concatBytes(p2pkh(3), bitcomTail(['19HxigV4QyBv3tHpQVcUEQyq1pzZVdoAut', NOTE, 'text/plain']))
  const note = chain.spend({
    inputs: [funding],
    outputs: [one(text(NOTE)), one(asB), one(text(utf8('other')))],
  })
  const long = chain.spend({ outputs: [one(text(LONG))] })
  const pieces = chain.spend({ outputs: [one(inPieces(IN_PIECES))] })
  const moved = chain.spend({ inputs: [note], outputs: [one(p2pkh(4))] })
  await submit(first, [note, funding])
  for (const each of [long, pieces]) await second.writer.record([recordOf(each, 100)])
  await submit(first, [moved])
  // Pending, held, and refused at the second one alone.
  const pending = chain.spend({ outputs: [one(text(NOTE))] })
  await writePending(rows, pending)
  const held = chain.spend({ outputs: [one(text(NOTE), 8)] })
  await hold(first, held)
  const loser = chain.spend({ inputs: [funding], outputs: [one(text(NOTE), 9)] })
  expect(await submit(second, [loser])).toBe(false)
  await gateways.expectEqual()
  for (const { folder } of gateways.all) {
    mkdirSync(imagesFolder(folder))
    writeFileSync(join(imagesFolder(folder), 'made of it'), encodePush(NOTE))
  }
  return { rows, gateways, note, long, pieces, moved }
}

async function hold({ writer }: Gateway, held: FakeTransaction): Promise<void> {
  const lock = { height: 9e6, time: 0 }
  await writer.note('hold', { txid: held.txid, lock, beef: beefOf(held) }, { maxCount: 9 })
}

/** Makes something pending that has content, as something is that the policy of a gateway has refused. */
async function writePending(rows: MemoryRows, transaction: FakeTransaction): Promise<void> {
  const sql = new Sql(':memory:')
  sql.exec(STATE_SCHEMA)
  new Pending(sql).add(transaction, [], { isWaiting: false })
  const batch = { first: rows.rows.length + 1, id: new Uint8Array(8), at: 1, rows: [...stateRows(sql)] }
  expect(await new MemoryLog(rows).insert(batch)).toBe(true)
  sql.close()
}

/** Where any of the content is found: rows of the log, and files of gateways. */
function found({ rows, gateways }: Pick<World, 'rows' | 'gateways'>): string[] {
  const parts = [
    encodePush(NOTE),
    LONG.subarray(CHUNK_BYTES - 9, CHUNK_BYTES + 9),
    IN_PIECES.subarray(0, PIECE),
    IN_PIECES.subarray(-20),
  ]
  return parts.flatMap((part) => [
    ...rows.rows.flatMap(({ seq, body }) =>
      body !== undefined && Buffer.from(body).includes(Buffer.from(part)) ? [`row ${seq}`] : [],
    ),
    ...gateways.all.flatMap(({ folder }) => filesWith(folder, part)),
  ])
}

const all = ({ note, long, pieces }: World) => [note, long, pieces].map(({ txid }) => ({ txid, vout: 0 }))

async function expectPurged(world: World): Promise<void> {
  const { gateways, rows } = world
  // With one that reads the log from the start.
  await gateways.add(new MemoryLog(rows))
  await gateways.expectEqual()
  expect(found(world)).toEqual([])
}

test('content is removed from the log, and from each copy of it, and all indexes stay as they are', async () => {
  const everything = await world()
  const { rows, gateways, note, long, pieces, moved } = everything
  expect(found(everything).length).toBeGreaterThan(8)
  const purged = await purgeLog(new MemoryLog(rows), all(everything), 'an order')
  expect(purged).toMatchObject({ unread: [] })
  expect(purged.sha256).toHaveLength(3)
  expect(purged.outpoints.sort()).toEqual(
    [note.outpoint(0), note.outpoint(1), long.outpoint(0), pieces.outpoint(0)].sort(),
  )
  expect(purged.forgotten).toHaveLength(2)
  await expectPurged(everything)
  // Gateways go on.
  const chain = gateways.chain
  const next = chain.spend({ inputs: [moved], outputs: [one(text(utf8('next')))] })
  expect(await submit(gateways.all[0] as never, [next])).toBe(true)
  await gateways.expectEqual()
})

test('what a long read keeps in a WAL is removed once that ends, also where the gateway was killed meanwhile', async () => {
  const everything = await world()
  const { rows, gateways } = everything
  const [{ folder, writer }] = gateways.all as [Gateway]
  const reader = new Sql(storeFiles(folder).log)
  reader.exec('begin')
  reader.get('select seq from log limit 1')
  await purgeLog(new MemoryLog(rows), all(everything), 'an order')
  await writer.follow()
  const killed = mkdtempSync(join(tmpdir(), 'gateway-'))
  cpSync(folder, killed, { recursive: true })
  expect(filesWith(killed, encodePush(NOTE))).not.toEqual([])
  reader.close()
  await gateways.add(new MemoryLog(rows), killed)
  await expectPurged(everything)
})

test.each(['pending', 'held'])(
  'content that only something %s has is removed, also from what one gateway has refused',
  async (kind) => {
    const { chain, rows, gateways, first, second } = await twoGateways()
    const funding = chain.spend({ outputs: [one(OPEN_LOCK, 9000)] })
    const winner = chain.spend({ inputs: [funding], outputs: [one(text(utf8('other')))] })
    await submit(first, [winner, funding])
    expect(await submit(second, [chain.spend({ inputs: [funding], outputs: [one(text(NOTE), 9)] })])).toBe(
      false,
    )
    const waiting = chain.spend({ outputs: [one(text(NOTE))] })
    if (kind === 'held') await hold(first, waiting)
    else await writePending(rows, waiting)
    await gateways.expectEqual()
    const purge = () => purgeLog(new MemoryLog(rows), [{ txid: waiting.txid, vout: 0 }], 'an order')
    expect(await purge()).toMatchObject({ forgotten: [waiting.txid] })
    await gateways.expectEqual()
    expect(found({ rows, gateways })).toEqual([])
    const before = rows.rows.length
    await purge()
    expect(rows.rows).toHaveLength(before)
    // It is submitted again, and admitted.
    await first.writer.record([recordOf(waiting, 100)])
    await gateways.expectEqual()
    expect((await purge()).outpoints).toEqual([waiting.outpoint(0)])
    await gateways.add(new MemoryLog(rows))
    await gateways.expectEqual()
    expect(found({ rows, gateways })).toEqual([])
  },
)

test('a gateway that has not read of it is no damage to a check beside it', async () => {
  const everything = await world()
  const { rows, gateways } = everything
  const [{ folder }] = gateways.all as [Gateway]
  const file = new Sql(storeFiles(folder).log)
  const copy = new LocalLog(file)
  const onDamage = vi.fn()
  const check = new LogCheck({ copy, onDamage, onProgress() {}, signal: new AbortController().signal })
  await purgeLog(new MemoryLog(rows), all(everything), 'an order')
  await check.run(new MemoryLog(rows))
  file.close()
  expect(onDamage.mock.calls).toEqual([])
})

test('the same command again adds nothing, and removes what came since', async () => {
  const everything = await world()
  const { rows, gateways, pieces } = everything
  const purge = () => purgeLog(new MemoryLog(rows), all(everything), 'an order')
  await purge()
  const before = rows.rows.length
  await purge()
  expect(rows.rows).toHaveLength(before)
  const { chain } = gateways
  const late = [text(NOTE), inPieces(IN_PIECES)].map((script) => chain.spend({ outputs: [one(script)] }))
  for (const each of late) await gateways.all[0]?.writer.record([recordOf(each, 300)])
  // Its body is a fact again.
  expect(rows.rows.filter(({ kind, body }) => kind === FACT.body && body !== undefined)).toHaveLength(1)
  expect((await purge()).outpoints).toEqual(
    expect.arrayContaining([...late, pieces].map((each) => each.outpoint(0))),
  )
  await expectPurged(everything)
})

test('one that ends before any of its calls is completed by the same command', async () => {
  const everything = await world()
  const kept = [...everything.rows.rows]
  for (let calls = 0, isDone = false; !isDone; calls++) {
    const rows: MemoryRows = { id: 'log', rows: kept.map((row) => ({ ...row })) }
    const gateways = new Gateways(everything.gateways.chain)
    await gateways.add(new MemoryLog(rows))
    const log = new MemoryLog(rows)
    let count = 0
    log.onTheWay = (_call, when) => {
      if (when === 'before' && count++ === calls) throw new Error('killed')
    }
    await purgeLog(log, all(everything), 'an order').then(
      () => {
        isDone = true
      },
      () => {},
    )
    await gateways.expectEqual()
    await purgeLog(new MemoryLog(rows), all(everything), 'an order')
    await expectPurged({ ...everything, rows, gateways })
    await gateways.close()
  }
}, 60_000)

test('a write of others comes in between, and is looked at, too', async () => {
  const everything = await world()
  const { rows, gateways } = everything
  const log = new MemoryLog(rows)
  let late: FakeTransaction | undefined
  log.onTheWay = async (call, when) => {
    if (call !== 'insert' || when !== 'before' || late !== undefined) return
    late = gateways.chain.spend({ outputs: [one(text(NOTE))] })
    await gateways.all[0]?.writer.record([recordOf(late, 400)])
  }
  expect((await purgeLog(log, all(everything), 'an order')).outpoints).toContain(late?.outpoint(0))
  await expectPurged(everything)
  const blocks = rows.rows
    .filter(({ kind }) => kind === FACT.register)
    .map(({ key, body }) => readRegisterFact({ key, body: body as Uint8Array }))
    .filter(({ subject }) => subject.startsWith('block '))
  expect(blocks).toHaveLength(3)
  expect(readdirSync(gateways.all[0]?.folder ?? '')).toContain('log.db')
})
