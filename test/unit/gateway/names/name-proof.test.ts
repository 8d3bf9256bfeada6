import { Beef, Utils } from '@bsv/sdk'
import { expectError } from '../../../support/gateway/expect-error.js'
import { MineTree } from '../../../support/graph/mine-tree.js'
import { beefOf, type FakeTransaction } from '../../../support/protocol/fake-chain.js'
import {
  type Answer,
  posted,
  type TestServer,
  treeOf,
  useServers,
} from '../../../support/server/test-server.js'

const { start } = useServers()

const proofOf = (server: TestServer, name: string, question?: Parameters<TestServer['ask']>[1]) =>
  server.ask(`/svc/names/proof/${name}`, question)

async function submit(
  server: TestServer,
  transaction: FakeTransaction,
  { topics = ['tm_names'], ...options }: Parameters<typeof beefOf>[1] & { topics?: string[] } = {},
): Promise<void> {
  await server.take(beefOf(transaction, options), topics)
}

/** An Outpoint BEEF, read by the SDK. */
function read({ body }: Answer): { subject: string; beef: Beef; txids: string[] } {
  const reader = new Utils.ReaderUint8Array(Uint8Array.from(body))
  expect(Utils.toHex(Array.from(reader.read(4)))).toBe('16a7beef')
  const txid = Utils.toHex(Array.from(reader.read(32)).reverse())
  const subject = `${txid}_${reader.readUInt32LE()}`
  const beef = Beef.fromReader(reader)
  expect(reader.eof()).toBe(true)
  return { subject, beef, txids: beef.txs.map((each) => each.txid) }
}

const txidsOf = (transactions: FakeTransaction[]): string[] => transactions.map(({ txid }) => txid)

const tree = new MineTree()
const { chain } = tree
for (const name of ['a', 'b', 'ab', 'ac', 'abc', 'c', 'abd']) tree.mint(name)
/** Until the last test that asks it loses a node. */
const server = await start(treeOf(chain.deployment))
for (const each of tree.transactions) await submit(server, each)

describe('a tree of names', () => {
  test('has a proof: the way from genesis, proven, with the origin of the name as the subject', async () => {
    const answer = await proofOf(server, 'abd')
    expect(answer.headers).toMatchObject({
      'content-type': 'application/octet-stream',
      'cache-control': 'no-cache',
      'x-content-type-options': 'nosniff',
    })
    const { subject, beef, txids } = read(answer)
    expect([subject, txids]).toEqual([tree.mintOf('abd').outpoint(2), txidsOf(tree.way('abd'))])
    expect(beef.isValid()).toBe(true)
  })

  describe('to callers who know some of it', () => {
    const foreign = `${'7'.repeat(64)}_0`
    const of = (name: string, vout: number): string => tree.mintOf(name).outpoint(vout)

    test.each<[string, string[], number]>([
      ['from the node that they know', [of('ab', 1)], -2],
      ['from a mint of which they name the name', [of('a', 2)], 2],
      ['from genesis on', [chain.genesis.outpoint(0)], 1],
      ['from the deepest of several', [of('a', 1), of('abc', 0), chain.genesis.outpoint(0)], -1],
      ['and ignores what is not on the way', [foreign, of('c', 0), of('a', 1)], 2],
      ['in full if nothing is on the way', [foreign, of('c', 1)], 0],
      ['with the mint of the name in any case', [of('abd', 2)], -1],
    ])('is shown %s', async (_, known, from) => {
      const full = await proofOf(server, 'abd')
      const answer = await proofOf(server, `abd?known=${known.join(',')}`)
      const { subject, txids } = read(answer)
      const expected = txidsOf(tree.way('abd')).slice(from)
      expect({ subject, txids }).toEqual({ subject: of('abd', 2), txids: expected })
      expect(answer.headers['cache-control']).toBe('no-cache')
      expect(answer.headers.etag === full.headers.etag).toBe(answer.body.equals(full.body))
    })

    test('is never taken for the whole by a cache that ignores the query', async () => {
      const { headers } = await proofOf(server, 'abd')
      const revalidation = { headers: { 'if-none-match': headers.etag ?? '' } }
      expect(await proofOf(server, 'abd', revalidation)).toMatchObject({ status: 304 })
      const part = await proofOf(server, `abd?known=${of('abc', 0)}`, revalidation)
      expect(part).toMatchObject({ status: 200 })
      expect(read(part).txids).toEqual([tree.mintOf('abd').txid])
    })

    test.each([
      ['text', 'known=x'],
      ['a transaction', `known=${'7'.repeat(64)}`],
      ['too many', `known=${Array.from({ length: 17 }, () => foreign).join(',')}`],
    ])('refuses %s instead of a list of outpoints', async (_, query) => {
      expectError(await proofOf(server, `abd?${query}`), { status: 400, code: 'BAD_OUTPOINT' })
    })
  })

  test.each([
    ['nobody claimed', 'zz', 404, 'NOT_FOUND'],
    ['is claimed but for its end', 'abzz', 404, 'NOT_FOUND'],
    ['has capitals', 'AB', 400, 'BAD_NAME'],
  ])('refuses a name that %s', async (_, name, status, code) => {
    expectError(await proofOf(server, name), { status, code })
  })
})

describe('a proof in parts', () => {
  /** All parts of what a path answers, each no longer than needed, asked for with the node or name before. */
  async function partsOf(path: string, maxBytes: number): Promise<{ subject: string; txids: string[] }[]> {
    const parts: { subject: string; txids: string[] }[] = []
    for (let known = ''; ; ) {
      const answer = await server.ask(`${path}?maxBytes=${maxBytes}${known && `&known=${known}`}`)
      const { subject, txids } = read(answer)
      expect(txids.at(-1)).toBe(subject.split('_')[0])
      if (parts.at(-1)?.subject === subject) return parts
      parts.push({ subject, txids })
      known = subject
    }
  }

  test.each(['b', 'ab', 'abd'])('of %s shows each step once, whatever fits', async (name) => {
    const { subject, txids } = read(await proofOf(server, name))
    for (const maxBytes of [1, 600, 1500, 1_000_000]) {
      const parts = await partsOf(`/svc/names/proof/${name}`, maxBytes)
      expect(parts.at(-1)?.subject).toBe(subject)
      expect(parts.flatMap((part) => part.txids)).toEqual(txids)
      // The first part brings the genesis with it.
      if (maxBytes === 1)
        expect(parts.map((part) => part.txids.length)).toEqual([2, ...txids.slice(2).map(() => 1)])
      if (maxBytes === 1_000_000) expect(parts).toHaveLength(1)
    }
    expect(txids[0]).toBe(chain.genesis.txid)
  })

  test('of ls_names ends with a node, an origin or an output on the way', async () => {
    const ask = async (query: object): Promise<{ outpoint: string; txids: string[] }> => {
      const { status, json } = await server.ask('/lookup', posted({ service: 'ls_names', query }))
      expect(status).toBe(200)
      const { outputs } = json as { outputs: { beef: number[]; outputIndex: number }[] }
      const [output] = outputs
      const beef = Beef.fromBinary(output?.beef ?? [])
      const txids = beef.txs.map(({ txid }) => txid)
      return { outpoint: `${txids.at(-1)}_${output?.outputIndex}`, txids }
    }
    for (const query of [{ mine: 'abx' }, { node: 'ab' }, { node: '' }, { origin: 'abd' }, { name: 'abd' }]) {
      const whole = await ask({ ...query, history: true })
      const seen: string[] = []
      let last = ''
      for (;;) {
        const known = last === '' ? {} : { known: [last] }
        const { outpoint, txids } = await ask({ ...query, history: true, maxBytes: 1, ...known })
        if (outpoint === last) break
        seen.push(...txids)
        last = outpoint
      }
      expect([last, seen]).toEqual([whole.outpoint, whole.txids])
    }
  })

  test('of no bytes, or of what is no number, is refused', async () => {
    for (const wrong of ['0', '-1', '1.5', 'all', '1e9', ''])
      expectError(await proofOf(server, `ab?maxBytes=${wrong}`), { status: 400, code: 'BAD_OUTPOINT' })
  })
})
