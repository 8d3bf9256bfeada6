import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { MemoryLog, type MemoryRows } from '../../support/facts/memory-log.js'
import { inscriptionScript, p2pkh } from '../../support/protocol/fake-chain.js'
import { type Gateway, Gateways, read, submit } from '../../support/writer/gateways.js'

const rows: MemoryRows = { id: 'ab'.repeat(16), rows: [] }
const gateways = new Gateways()
const logs: MemoryLog[] = []
afterAll(() => gateways.close())

async function open(): Promise<Gateway> {
  logs.push(new MemoryLog(rows))
  return await gateways.add(logs.at(-1) as MemoryLog)
}

const state = ({ folder }: Gateway, name: string): unknown =>
  read(folder, `select value from state where name = '${name}'`)[0]?.value
const TRY = { hole: true, tries: 3, due: 1e12, place: 1e12, transactions: 4, bytes: 500 }

test('who takes a job over goes on where the other one was', async () => {
  const [one, two] = [await open(), await open()]
  const [first] = logs
  for (const { writer } of [one, two]) await writer.seekJobs(['follow'])
  await one.writer.beat()
  await two.writer.beat()
  expect([one, two].map(({ writer }) => writer.status.jobs)).toEqual([['follow', 'collect'], []])
  await one.writer.setting('tree_followed', '{"complete":true}')
  await one.writer.setting('space probed', '1')
  await one.writer.setting('synced https://peer.example tm_names', '17')
  const { chain } = gateways
  const unknown = chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: p2pkh(1) }] })
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8('moved') })
  const moved = chain.spend({
    inputs: [{ transaction: unknown, vout: 0 }],
    outputs: [{ satoshis: 1, lockingScript }],
  })
  await submit(one, [moved])
  await one.writer.note('postpone', [{ txid: moved.txid, vout: 0 }], TRY)
  // What cannot be published is published later.
  if (first !== undefined)
    first.onTheWay = (call) => {
      if (call === 'note') throw new Error('the network is down')
    }
  await one.writer.setting('follow_position', 'name a')
  expect(rows.notes?.get('state follow_position')).toBeUndefined()
  if (first !== undefined) first.onTheWay = () => {}
  await one.writer.setting('synced https://peer.example tm_names', '18')
  await two.writer.beat()
  expect(state(two, 'tree_followed')).toBe('{"complete":true}')
  expect(state(two, 'follow_position')).toBe('name a')
  expect(state(two, 'space probed')).toBeUndefined()
  expect(state(two, 'synced https://peer.example tm_names')).toBe('18')
  // Of which there may be very many: only who does the job reads them.
  expect(read(two.folder, 'select * from ancestor')).toEqual([])
  await one.writer.close()
  gateways.all.shift()
  await two.writer.beat()
  expect(two.writer.status.jobs).toEqual(['follow', 'collect'])
  expect(read(two.folder, 'select * from ancestor')).toEqual([
    { ...TRY, hole: 1, txid: Buffer.from(moved.txid, 'hex'), vout: 0 },
  ])
  // What it writes is not replaced by what it wrote before.
  await two.writer.setting('follow_position', 'name b')
  await two.writer.beat()
  expect(state(two, 'follow_position')).toBe('name b')
  expect(rows.notes?.get('state follow_position')).toBe('name b')
})

test('a gateway that comes later knows how far others have come', async () => {
  const three = await open()
  expect(state(three, 'tree_followed')).toBe('{"complete":true}')
  expect(state(three, 'synced https://peer.example tm_names')).toBe('18')
  await gateways.expectEqual()
})
