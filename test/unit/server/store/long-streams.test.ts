import { sha256 } from '../../../../backend/src/graph/native-hash.js'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { streamPath, streamsOn } from '../../../support/gateway/streams.js'
import { FakeChain } from '../../../support/protocol/fake-chain.js'
import { sqlOf, useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const server = await servers.start({ STORAGE: 'tables' })
const { streamOf } = streamsOn(server, new FakeChain())

/** Some pages of them; `CHUNKS=20000` is a film. */
const CHUNKS = Number(process.env.CHUNKS ?? 3000)
const [first] = await streamOf(['start', 'chunk'])

beforeAll(async () => {
  // Straight into the table: as many submissions would take minutes. All of them hold what the second chunk does.
  const lineage = Buffer.from(first?.txid ?? '', 'hex')
  await sqlOf(server.node).writer.raw(
    `insert into graph_outputs (txid, vout, satoshis, content_sha256, content_type, content_length, unsettled,
       lineage_txid, lineage_vout, step, content_step)
     with recursive steps(step) as (select 2 union all select step + 1 from steps where step < ?)
     select randomblob(32), 0, 1, ?, ?, 5, 0, ?, 0, step, step from steps`,
    [CHUNKS - 1, sha256(utf8('chunk')), Buffer.from('gw/stream'), lineage],
  )
})

describe(`a stream of ${CHUNKS} chunks`, () => {
  test('keeps nobody waiting while it is summed up', async () => {
    const answered: string[] = []
    const asked = async (path: string): Promise<void> => {
      expect((await server.ask(path, { method: 'HEAD' })).status).toBe(200)
      answered.push(path)
    }
    const life = '/health/live'
    await Promise.all([asked(streamPath(first)), asked(life), asked(life), asked(life)])
    expect(answered).toEqual([life, life, life, streamPath(first)])
  })

  test('is served from its first byte to its last', async () => {
    const ends = await Promise.all(
      ['bytes=0-7', 'bytes=-8'].map((range) => server.ask(streamPath(first), { headers: { Range: range } })),
    )
    expect(ends.map(({ status, body }) => [status, body.toString('utf8')])).toEqual([
      [206, 'startchu'],
      [206, 'unkchunk'],
    ])
    expect(ends[1]?.headers['content-range']).toBe(`bytes ${CHUNKS * 5 - 8}-${CHUNKS * 5 - 1}/${CHUNKS * 5}`)
    const { body } = await server.ask(streamPath(first))
    expect(body.equals(Buffer.from(`start${'chunk'.repeat(CHUNKS - 1)}`))).toBe(true)
  })

  test('ends where an output is gone, at the border of two pages too', async () => {
    for (const step of [600, 509, 10, 9]) {
      const [output] = await sqlOf(server.node).reader.all(
        'select txid from graph_outputs where lineage_txid = ? and lineage_vout = 0 and step = ?',
        [Buffer.from(first?.txid ?? '', 'hex'), step],
      )
      await sqlOf(server.node)
        .writer('graph_outputs')
        .where({ txid: Buffer.from(output.txid) })
        .delete()
      await server.node.writing?.(async () => {})
      const { headers } = await server.ask(streamPath(first), { method: 'HEAD' })
      expect(headers['content-length']).toBe(String(step * 5))
    }
  })
})
