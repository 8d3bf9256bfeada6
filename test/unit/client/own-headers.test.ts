import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HEADER_BYTES, hashNumber, rootOf, timeOf } from '../../../backend/src/protocol/block-header.js'
import { joinBytes } from '../../../backend/src/protocol/bytes.js'
import { hash256 } from '../../../backend/src/protocol/transaction.js'
import type { SourceTip } from '../../../src/chain/headers/header-chain.js'
import { FileSegmentStore } from '../../../src/client/file-segment-store.js'
import { type HeaderSource, OwnHeaders, type OwnHeadersOptions } from '../../../src/client/own-headers.js'
import { createVerifiedFetch } from '../../../src/client/verified-fetch.js'
import { startIndex } from '../../support/client/name-index.js'
import { outpointBeef } from '../../support/client/name-proofs.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { HeaderChain } from '../../support/server/header-chain.js'

type Query = Parameters<HeaderSource['headers']>[0]

// A chain of real headers with work that is easy, and sources that are honest, short, or lie.

const FIRST = 800_000
const hello = new FakeChain().inscribe({ contentType: 'text/plain', body: Buffer.from('hello') })

function grownChain() {
  const chain = new HeaderChain(FIRST)
  chain.grow(20)
  const block = chain.mine([hello])
  chain.grow(120)
  return { chain, block }
}

type Change = (header: Uint8Array, height: number) => Uint8Array
/** What a source answers: the headers of the chain that counts, changed. */
function sourceOf(
  chain: HeaderChain,
  { asked = [], change = (header) => header }: { asked?: number[]; change?: Change } = {},
): HeaderSource {
  return {
    name: 'a source',
    async headers({ from, count }) {
      asked.push(from)
      return headersOf(chain, { from, count }, change)
    },
  }
}

function headersOf(chain: HeaderChain, { from, count }: Query, change: Change = (header) => header) {
  const headers: Uint8Array[] = []
  for (let height = from; height < from + count; height++) {
    const bytes = chain.branch.block(height)?.header.bytes
    if (bytes === undefined) break
    headers.push(change(bytes, height))
  }
  return joinBytes(headers)
}

const checkpointAt = (chain: HeaderChain, height: number) => ({
  height,
  hash: chain.branch.block(height)?.header.hash ?? '',
})

const trackerOf = (
  chain: HeaderChain,
  sources: HeaderSource[],
  more: Partial<OwnHeadersOptions> = {},
): OwnHeaders =>
  new OwnHeaders({ sources, checkpoint: checkpointAt(chain, FIRST + 10), recheckAfter: 0, ...more })

/** Changes the last byte of the merkle root of a block, which has no proof of work then. */
const otherRootAt =
  (changed: number): Change =>
  (header, height) => {
    const bytes = header.slice()
    // Half of all hashes meet the easiest target.
    if (height === changed)
      do bytes[67] = ((bytes[67] ?? 0) + 1) % 256
      while (hashNumber(hash256(bytes)) <= 2n ** 255n)
    return bytes
  }

test('knows the roots above and below the checkpoint, and no others', async () => {
  const { chain, block } = grownChain()
  const tracker = trackerOf(chain, [sourceOf(chain)])
  const { root, height } = block.header
  expect(await tracker.isValidRootForHeight(root, height)).toBe(true)
  expect(await tracker.isValidRootForHeight(root, height - 1)).toBe(false)
  expect(await tracker.isValidRootForHeight(chain.rootAt(FIRST + 3) ?? '', FIRST + 3)).toBe(true)
  expect(await tracker.currentHeight()).toBe(chain.bestTip.height)
  await expect(tracker.isValidRootForHeight(root, height + 1000)).rejects.toMatchObject({
    code: 'NO_HEADERS',
  })
})

test.each([
  ['above the checkpoint', FIRST + 21],
  ['at the checkpoint', FIRST + 10],
  ['below the checkpoint', FIRST + 5],
])('a header that is changed %s is believed of no source, and another one is asked', async (_, changed) => {
  const { chain } = grownChain()
  const lying = sourceOf(chain, { change: otherRootAt(changed) })
  const wanted = FIRST + (changed < FIRST + 10 ? 5 : 21)
  const root = chain.rootAt(wanted) ?? ''
  await expect(trackerOf(chain, [lying]).isValidRootForHeight(root, wanted)).rejects.toMatchObject({
    code: 'NO_HEADERS',
  })
  expect(await trackerOf(chain, [lying, sourceOf(chain)]).isValidRootForHeight(root, wanted)).toBe(true)
})

test('a branch with more work replaces ours, and one with less does not', async () => {
  const { chain } = grownChain()
  const parted = chain.bestTip.height - 10
  const fork = chain.fork(parted)
  for (let left = 8; left > 0; left--) fork.mine()
  const short = new HeaderChain(FIRST)
  Object.assign(short, { active: fork })
  const tracker = trackerOf(chain, [sourceOf(chain), sourceOf(short)])
  const height = parted + 5
  expect(await tracker.isValidRootForHeight(chain.rootAt(height) ?? '', height)).toBe(true)
  for (let left = 8; left > 0; left--) fork.mine()
  expect(await tracker.isValidRootForHeight(chain.rootAt(height) ?? '', height)).toBe(false)
  expect(await tracker.isValidRootForHeight(short.rootAt(height) ?? '', height)).toBe(true)
})

test('a chain with less work than the real one had long ago is not believed', async () => {
  const { chain, block } = grownChain()
  const { root, height } = block.header
  const blocks = BigInt(chain.bestTip.height - (FIRST + 10))
  const isKnown = (minimumWork: bigint): Promise<boolean> => {
    const checkpoint = { ...checkpointAt(chain, FIRST + 10), minimumWork }
    return trackerOf(chain, [sourceOf(chain)], { checkpoint }).isValidRootForHeight(root, height)
  }
  // The easiest target takes two hashes.
  expect(await isKnown(2n * blocks)).toBe(true)
  await expect(isKnown(2n * blocks + 1n)).rejects.toMatchObject({ code: 'NO_HEADERS' })
})

test('headers are kept in files, and what these lost or changed is fetched again', async () => {
  const { chain, block } = grownChain()
  const folder = await mkdtemp(join(tmpdir(), 'minetree-headers-'))
  const { root, height } = block.header
  const isKnown = async (): Promise<{ known: boolean; asked: number[] }> => {
    const asked: number[] = []
    const store = new FileSegmentStore({ folder })
    const tracker = trackerOf(chain, [sourceOf(chain, { asked })], { store })
    return { known: await tracker.isValidRootForHeight(root, height), asked }
  }
  expect((await isKnown()).asked).not.toEqual([])
  expect(await isKnown()).toEqual({ known: true, asked: [] })
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  expect(files.length).toBeGreaterThan(1)
  for (const file of files) {
    const text = await readFile(file, 'utf8')
    for (const other of ['', text.replaceAll(/[B8]/g, '7')]) {
      await writeFile(file, other)
      const { known, asked } = await isKnown()
      expect([file, known, asked.length > 0]).toEqual([file, true, true])
      expect(await isKnown()).toEqual({ known: true, asked: [] })
    }
  }
  await rm(folder, { recursive: true })
})

test('what a store has is verified as what a source says: no block is forged by writing to it', async () => {
  const { chain } = grownChain()
  const kept = new Map<string, string>()
  const store = {
    get: async (key: string) => kept.get(key),
    put: async (key: string, text: string) => void kept.set(key, text),
  }
  const tracker = (): OwnHeaders => trackerOf(chain, [sourceOf(chain)], { store })
  const { height } = chain.bestTip
  const root = chain.rootAt(height) ?? ''
  expect(await tracker().isValidRootForHeight(root, height)).toBe(true)
  const [page] = [...kept.keys()].filter((key) => key.endsWith(`/p${FIRST / 2000}`)) as [string]
  const headers = Buffer.from(kept.get(page) ?? '', 'base64')
  const last = headers.subarray((height - FIRST) * HEADER_BYTES, (height - FIRST + 1) * HEADER_BYTES)
  do last.writeUInt8((last.readUInt8(36) + 1) % 256, 36)
  while (hashNumber(hash256(last)) <= 2n ** 255n)
  const forged = rootOf(last)
  kept.set(page, headers.toString('base64'))
  expect(await tracker().isValidRootForHeight(forged, height)).toBe(false)
  expect(await tracker().isValidRootForHeight(root, height)).toBe(true)
})

const silent = () => new Promise<never>(() => {})
test.each([
  // From where, and how many.
  ...['0 999999999', '999999999 1', `${FIRST} 0`].map(
    (place) => [`says: ${place}`, async () => place] as const,
  ),
  ['never answers', silent] as const,
])('a store that %s has no headers', async (_, get) => {
  const { chain, block } = grownChain()
  const store = { get, put: get === silent ? silent : async () => {} }
  const { root, height } = block.header
  expect(await trackerOf(chain, [sourceOf(chain)], { store }).isValidRootForHeight(root, height)).toBe(true)
})

test('a source need not give all headers at once', async () => {
  const { chain, block } = grownChain()
  const honest = sourceOf(chain)
  const few: HeaderSource = {
    name: 'a source of seven headers',
    headers: ({ from, count }) => honest.headers({ from, count: Math.min(count, 7) }),
  }
  const tracker = trackerOf(chain, [few])
  const { root, height } = block.header
  expect(await tracker.isValidRootForHeight(root, height)).toBe(true)
  expect(await tracker.isValidRootForHeight(chain.rootAt(FIRST) ?? '', FIRST)).toBe(true)
})

test('a source that hangs is waited for once, and left out while another one answers, which failed before', async () => {
  const { chain } = grownChain()
  const honest = sourceOf(chain)
  let [isHanging, asked, failures] = [false, 0, 1]
  const hanging: HeaderSource = {
    name: 'a source that hangs',
    headers: (query) => {
      asked += Number(isHanging)
      return isHanging ? silent() : honest.headers(query)
    },
  }
  const failing: HeaderSource = {
    name: 'fails once',
    headers: async (query) => (failures-- > 0 ? Promise.reject(new Error('down')) : honest.headers(query)),
  }
  const tracker = trackerOf(chain, [hanging, failing], { fetch: { timeout: 20 } })
  for (isHanging of [false, true, true, true])
    expect(await tracker.currentHeight()).toBe(chain.bestTip.height)
  expect(asked).toBe(1)
})

test('a source that does not say its tip is not asked for headers; those that are known count as long as none does', async () => {
  const { chain } = grownChain()
  const { height, hash } = chain.bestTip
  const asked: number[] = []
  let isThere = false
  const tip = async (): Promise<SourceTip> => {
    if (isThere) return { height, hash }
    throw new Error('it says nothing')
  }
  const tracker = trackerOf(chain, [{ ...sourceOf(chain, { asked }), tip }])
  await expect(tracker.currentHeight()).rejects.toThrow('no block headers: a source: it says nothing')
  expect(asked).toEqual([])
  isThere = true
  expect(await tracker.currentHeight()).toBe(height)
  expect(tracker.progress).toBe(`block headers are being fetched; they are known up to ${height}`)
  const before = asked.length
  // The tip is known already.
  expect(await tracker.currentHeight()).toBe(height)
  isThere = false
  expect(await tracker.currentHeight()).toBe(height)
  expect(asked).toHaveLength(before)
})

test('a block that is known is answered for while others are fetched, however far below', async () => {
  const { chain, block } = grownChain()
  const { root, height } = block.header
  const honest = sourceOf(chain)
  const short: HeaderSource = {
    name: 'a source that hangs below the checkpoint',
    headers: (query) => (query.from === FIRST + 3 ? new Promise(() => {}) : honest.headers(query)),
  }
  const tracker = trackerOf(chain, [short], { fetch: { timeout: 500 } })
  expect(await tracker.isValidRootForHeight(root, height)).toBe(true)
  const outcomes: string[] = []
  await Promise.all([
    tracker.isValidRootForHeight(root, FIRST + 3).catch(({ code }) => outcomes.push(code)),
    tracker.isValidRootForHeight(root, height).then((isValid) => outcomes.push(String(isValid))),
  ])
  expect(outcomes).toEqual(['true', 'NO_HEADERS'])
})

test('a height that a proof makes up fetches no chain of headers, above or below', async () => {
  const chain = new HeaderChain(FIRST)
  chain.grow(2300)
  let headers = 0
  const honest = sourceOf(chain)
  const counting: HeaderSource = {
    name: 'a source',
    headers: async (query) => {
      const bytes = await honest.headers(query)
      headers += bytes.length / HEADER_BYTES
      return bytes
    },
  }
  const down: HeaderSource = { name: 'down', headers: async () => Promise.reject(new Error('down')) }
  const time = timeOf(chain.branch.block(chain.bestTip.height)?.header.bytes ?? new Uint8Array(80))
  const tracker = new OwnHeaders({
    sources: [down, counting],
    checkpoint: checkpointAt(chain, FIRST + 2250),
    now: () => time * 1000,
  })
  const madeUp = 'ab'.repeat(32)
  await tracker.currentHeight()
  headers = 0
  expect(await tracker.isValidRootForHeight(madeUp, FIRST + 1)).toBe(false)
  expect(headers).toBe(1)
  for (const height of [chain.bestTip.height + 101, 2_000_000, 0xffffffff])
    expect(await tracker.isValidRootForHeight(madeUp, height)).toBe(false)
  expect(headers).toBe(1)
  await expect(tracker.isValidRootForHeight(madeUp, chain.bestTip.height + 5)).rejects.toMatchObject({
    code: 'NO_HEADERS',
  })
  // What a source shows is fetched and verified.
  expect(await tracker.isValidRootForHeight(chain.rootAt(FIRST + 1) ?? '', FIRST + 1)).toBe(true)
  expect(await tracker.isValidRootForHeight(madeUp, FIRST + 1)).toBe(false)
})

test('a source that failed once is asked about a block far below that another one does not have', async () => {
  const chain = new HeaderChain(FIRST)
  chain.grow(2300)
  const [whole, other] = [sourceOf(chain), sourceOf(chain)]
  let failures = 1
  const failing: HeaderSource = {
    name: 'fails once',
    headers: async (query) => (failures-- > 0 ? Promise.reject(new Error('down')) : whole.headers(query)),
  }
  const pruned: HeaderSource = {
    name: 'pruned',
    headers: async (query) => (query.from < FIRST + 2000 ? new Uint8Array() : other.headers(query)),
  }
  const checkpoint = checkpointAt(chain, FIRST + 2250)
  const tracker = new OwnHeaders({ sources: [failing, pruned], checkpoint })
  expect(await tracker.isValidRootForHeight(chain.rootAt(FIRST + 1) ?? '', FIRST + 1)).toBe(true)
})

test('a gateway whose headers are changed proves nothing: the fetch fails at the headers', async () => {
  const { chain, block } = grownChain()
  const proof = outpointBeef({ txid: hello.txid, vout: 0 }, [
    { txid: hello.txid, raw: hello.raw, proof: block.proof(hello.txid) },
  ])
  const from = FIRST + 10
  const answers = (change?: Change) => ({
    [`/v2/headers?height=${from - 146}&count=147`]: { body: new Uint8Array() },
    [`/v2/headers?height=${from}&count=1`]: { body: headersOf(chain, { from, count: 1 }, change) },
    [`/v2/headers?height=${from + 1}&count=2000`]: {
      body: headersOf(chain, { from: from + 1, count: 2000 }, change),
    },
    [`/v2/headers?height=${chain.bestTip.height + 1}&count=2000`]: { body: new Uint8Array() },
    [`/svc/gateway/proof/${hello.txid}`]: { body: proof },
  })
  const fetched = async (change?: Change) => {
    const { url } = await startIndex(answers(change))
    const chainTracker = new OwnHeaders({ sources: [url], checkpoint: checkpointAt(chain, FIRST + 10) })
    return await createVerifiedFetch({ gateways: [url], chainTracker })(hello.txid)
  }
  const response = await fetched()
  expect([await response.text(), response.headers.get('x-verified')]).toEqual(['hello', 'headers'])
  await expect(fetched(otherRootAt(block.header.height))).rejects.toMatchObject({
    ...{ code: 'NO_HEADERS', step: 'headers' },
  })
})
