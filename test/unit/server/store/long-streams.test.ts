import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { streamPath } from '../../../support/gateway/streams.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../../../support/protocol/fake-chain.js'
import { useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const server = await servers.start()

/** Some pages of them; `CHUNKS=20000` is a film. */
const CHUNKS = Number(process.env.CHUNKS ?? 3000)
/** How many come in one BEEF, unproven: it may be so deep. */
const AT_ONCE = 900
let first: FakeTransaction

beforeAll(async () => {
  const chain = new FakeChain()
  const script = (contentType: string, body: string): Uint8Array =>
    inscriptionScript({ contentType, body: utf8(body), lock: OPEN_LOCK })
  const coin = chain.spend({ outputs: [{ satoshis: 5, lockingScript: OPEN_LOCK }] })
  const step = (transaction: FakeTransaction, lockingScript: Uint8Array): FakeTransaction =>
    chain.move(transaction, 0, lockingScript)
  first = step(coin, script('image/x-test', 'start'))
  let steps = [coin, first]
  for (let made = 1; made < CHUNKS; ) {
    for (; steps.length <= AT_ONCE && made < CHUNKS; made++)
      steps.push(step(steps.at(-1) ?? first, script('gw/stream', 'chunk')))
    const [last = first, ...others] = steps.toReversed()
    const unproven = others.slice(0, -1)
    const beef = beefOf(last, { with: others.toReversed(), unproven, proven: false })
    await server.take(beef, ['tm_ordinals'])
    steps = [last]
  }
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
})
