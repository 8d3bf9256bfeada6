import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Beef } from '@bsv/sdk'
import fc from 'fast-check'
import { decodeOutpoint, formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { FileSegmentStore } from '../../../src/client/file-segment-store.js'
import { LookupNameSource } from '../../../src/client/lookup-source.js'
import { HttpNameSource, type NameSource } from '../../../src/client/name-source.js'
import {
  type ResolutionError,
  type ResolvedName,
  type ResolveOptions,
  resolveName,
} from '../../../src/client/resolve.js'
import { MemorySegmentStore, type SegmentStore } from '../../../src/client/segment-store.js'
import { Segments } from '../../../src/client/segments.js'
import { type VerifiedName, verifyNameProof } from '../../../src/client/verify-name.js'
import { startIndex } from '../../support/client/name-index.js'
import { at, FakeHeaders, namedWorld, proofOf, provenanceOf } from '../../support/client/name-proofs.js'
import { MineTree } from '../../support/graph/mine-tree.js'
import { rounds } from '../../support/nightly.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  OPEN_LOCK,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { type TestServer, treeOf, useServers } from '../../support/server/test-server.js'

// What was verified once is neither fetched nor verified again, and nothing else is believed for it.

const servers = useServers()

/** A store whose texts a test can see and change. */
class OpenStore implements SegmentStore {
  readonly texts = new Map<string, string>()
  readonly segments = new Segments({ store: this })

  async get(key: string): Promise<string | undefined> {
    return this.texts.get(key)
  }

  async put(key: string, segment: string): Promise<void> {
    this.texts.set(key, segment)
  }

  /** The same texts in a store that nobody has read yet, as after a restart. */
  reopened(change: (text: string, key: string) => string = (text) => text): OpenStore {
    const store = new OpenStore()
    for (const [key, text] of this.texts) store.texts.set(key, change(text, key))
    return store
  }
}

/** A segment as it is kept, under its digest. */
function sealed(body: string): string {
  return `${createHash('sha256').update(body).digest('hex')} ${body}`
}

/** A name as an index proves it that shows this, whatever is known of it. */
async function verifiedWith({
  proof,
  ...asked
}: Omit<ResolveOptions, 'sources'> & { proof: Uint8Array }): Promise<VerifiedName> {
  const origin = decodeOutpoint(proof.subarray(4, 40))
  const evidence = { form: 'proofs' as const, origin, tip: origin, proof }
  const source: NameSource = { ask: async () => [{ index: 'one', kind: 'claimed', evidence, spent: false }] }
  return (await resolveName({ ...asked, sources: [source] })).origin
}

const NO_GENESIS = { reports: [{ error: { code: 'NO_GENESIS' } }] }

/** Headers of which a test can take blocks. */
class ChangingHeaders extends FakeHeaders {
  readonly gone = new Set<string>()

  override async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    return (await super.isValidRootForHeight(root, height)) && !this.gone.has(root)
  }
}

/** What was asked of a server: paths without the outpoints that the asker knows, and every transaction in the answers. */
class Asked {
  readonly paths: string[] = []
  readonly transactions: string[] = []
  bytes = 0

  readonly fetch: typeof fetch = async (input, init) => {
    const { pathname } = new URL(String(input))
    this.paths.push(pathname)
    const answer = await fetch(input, init)
    const body = await answer.clone().arrayBuffer()
    this.bytes += body.byteLength
    if (answer.ok && answer.headers.get('content-type') === 'application/octet-stream')
      this.transactions.push(...Beef.fromBinary([...new Uint8Array(body, 40)]).txs.map(({ txid }) => txid))
    return answer
  }
}

const plain = ({ checkedAt: _, freshness: __, reports, ...rest }: ResolvedName) => ({
  ...rest,
  verdicts: reports.map(({ verdict }) => verdict),
})

describe('names that share a prefix', () => {
  const tree = new MineTree()
  const { deployment } = tree.chain
  const letters = [...'abcdefghijkl']
  const names = ['q', 'p', ...letters.map((one) => `p${one}`)]
  for (const one of letters) names.push(...[...'xyz'].map((other) => `p${one}${other}`))
  let server: TestServer
  let headers: FakeHeaders

  beforeAll(async () => {
    for (const name of names) tree.mint(name)
    headers = new FakeHeaders(tree.transactions)
    server = await servers.start(treeOf(deployment))
    for (const each of tree.transactions) await server.submit(beefOf(each), ['tm_names', 'tm_ordinals'])
  })

  const resolver = (asked: Asked, segments?: Segments) => async (name: string) =>
    await resolveName({
      name,
      deployment,
      chainTracker: headers,
      sources: [new HttpNameSource({ url: server.url, fetch: asked.fetch })],
      ...(segments && { segments }),
    })

  test.each([
    ['one after another', false],
    ['all at once', true],
  ])('are resolved with each mint fetched once: %s', async (_, isAtOnce) => {
    const asked = new Asked()
    const resolve = resolver(asked, new Segments({ store: new MemorySegmentStore() }))
    const resolved: ResolvedName[] = []
    if (isAtOnce) resolved.push(...(await Promise.all(names.map(resolve))))
    else for (const name of names) resolved.push(await resolve(name))
    expect(new Set(asked.transactions).size).toBe(asked.transactions.length)
    expect(new Set(asked.transactions)).toEqual(new Set(tree.transactions.map(({ txid }) => txid)))
    const resolveAlone = resolver(new Asked())
    for (const [at, name] of [...names.entries()].filter((_, at) => at % 5 === 0))
      expect(plain(resolved[at] as ResolvedName)).toEqual(plain(await resolveAlone(name)))
  })

  test('are resolved again with the records alone, also after a restart', async () => {
    const store = new OpenStore()
    for (const name of names) await resolver(new Asked(), store.segments)(name)
    headers.asked.length = 0
    const asked = new Asked()
    expect(plain(await resolver(asked, store.reopened().segments)('pax'))).toEqual(
      plain(await resolver(new Asked())('pax')),
    )
    expect(asked.paths).toEqual(['/svc/names/pax'])
    expect(asked.transactions).toEqual([])
  })

  test('are resolved where the host ignores what is known', async () => {
    const segments = new Segments({ store: new MemorySegmentStore() })
    await resolver(new Asked(), segments)('pay')
    const old: typeof fetch = async (input, init) => await fetch(String(input).replace(/\?.*/, ''), init)
    const sources = [new HttpNameSource({ url: server.url, fetch: old })]
    const question = { name: 'pcz', deployment, chainTracker: headers, sources, segments }
    expect(plain(await resolveName(question))).toEqual(plain(await resolver(new Asked())('pcz')))
  })

  test('are resolved by lookups with what is new, and in full by hosts that leave nothing out', async () => {
    const segments = new Segments({ store: new MemorySegmentStore() })
    const sent: number[] = []
    const lookUp = async (name: string, refuses: string) => {
      const fetched: typeof fetch = async (input, init) => {
        if (String(init?.body).includes(refuses)) return new Response('{}', { status: 400 })
        const answer = await fetch(input, init)
        sent.push((await answer.clone().arrayBuffer()).byteLength)
        return answer
      }
      const resolver = { networkPreset: 'local' as const, hostOverrides: { ls_names: [server.url] } }
      const sources = [new LookupNameSource({ resolver, fetch: fetched })]
      return plain(await resolveName({ name, deployment, chainTracker: headers, sources, segments }))
    }
    for (const [name, refuses] of [
      ['pax', 'nothing'],
      ['pay', 'nothing'],
      ['paz', '"known"'],
    ] as const)
      expect(await lookUp(name, refuses)).toEqual(plain(await resolver(new Asked())(name)))
    const [first = 0, second = 0, third = 0] = sent
    expect(second).toBeLessThan(first / 2)
    expect(third).toBeGreaterThan(first)
  })

  test('are verified from a proof that starts where the store ends', async () => {
    const segments = new Segments({ store: new MemorySegmentStore() })
    const check = { deployment, chainTracker: headers }
    const way = tree.way('pcz')
    await verifiedWith({ ...check, name: 'pcz', proof: proofOf(way), segments })
    const later = tree.way('pdx')
    const part = proofOf(later.filter((each) => !way.includes(each)))
    expect(later.length - way.length).toBeLessThan(way.length)
    const expected = await verifyNameProof({ ...check, name: 'pdx', proof: proofOf(later) })
    expect(await verifiedWith({ ...check, name: 'pdx', proof: part, segments })).toEqual(expected)
    for (const other of [
      { ...check, segments: new Segments({ store: new MemorySegmentStore() }) },
      // Under other rules it was not verified.
      { ...check, segments, deployment: { ...deployment, difficulty: deployment.difficulty + 1 } },
    ])
      await expect(verifiedWith({ ...other, name: 'pdx', proof: part })).rejects.toMatchObject(NO_GENESIS)
  })
})

describe('a name that has moved', () => {
  const world = namedWorld()
  const { deployment, line, mints, origin, tip, transfers, purse, way } = world
  const [first, second] = transfers
  const headers = new ChangingHeaders([...line, ...way])
  let server: TestServer
  const paths = {
    record: '/svc/names/abc',
    proof: '/svc/names/proof/abc',
    provenance: `/svc/gateway/provenance/${formatOutpoint(origin)}`,
  }

  const submit = async (transaction: FakeTransaction, sources: readonly FakeTransaction[]) =>
    await server.take(beefOf(transaction, { with: sources }), ['tm_ordinals'])
  beforeAll(async () => {
    server = await servers.start(treeOf(deployment))
    for (const mint of line) await server.submit(beefOf(mint), ['tm_names', 'tm_ordinals'])
  })
  beforeEach(() => headers.gone.clear())

  const resolve = async (segments: Segments | undefined, asked = new Asked(), urls = [server.url]) =>
    await resolveName({
      name: 'abc',
      deployment,
      chainTracker: headers,
      sources: urls.map((url) => new HttpNameSource({ url, fetch: asked.fetch })),
      ...(segments && { segments }),
    })

  test('is followed step by step, with what is new of each', async () => {
    const store = new OpenStore()
    expect(await resolve(store.segments)).toMatchObject({ tip: { tip: origin, sequence: 0 }, proven: true })
    await submit(first, [mints.abc])
    const one = new Asked()
    expect(await resolve(store.segments, one)).toMatchObject({ tip: { sequence: 1 }, proven: true })
    expect(one.transactions).toEqual([first.txid])
    await submit(second, [purse, first])
    const two = new Asked()
    expect(await resolve(store.reopened().segments, two)).toMatchObject({ tip: { tip, sequence: 2 } })
    expect(two.paths).toEqual([paths.record, paths.provenance])
    expect(two.transactions).toEqual([purse.txid, second.txid])
    expect(await resolve(store.segments)).toMatchObject({ tip: { tip } })
    const again = new Asked()
    expect(plain(await resolve(store.reopened().segments, again))).toEqual(plain(await resolve(undefined)))
    expect(again.paths).toEqual([paths.record])
  })

  /** What is kept of the name at its second step. */
  const kept = async (): Promise<OpenStore> => {
    const store = new OpenStore()
    await resolve(store.segments)
    return store
  }

  test.each<[string, (text: string) => string]>([
    ['cut', (text) => text.slice(0, -1)],
    ['emptied', () => ''],
    [
      'changed in its data',
      (text) => text.replace(/"height":(\d)/, (_, digit) => `"height":${(Number(digit) + 1) % 10}`),
    ],
    ['changed in its digest', (text) => (text.startsWith('0') ? '1' : '0') + text.slice(1)],
  ])('is verified again where each segment was %s', async (_, damage) => {
    const store = (await kept()).reopened(damage)
    const asked = new Asked()
    expect(plain(await resolve(store.segments, asked))).toEqual(plain(await resolve(undefined)))
    expect(asked.paths).toEqual([paths.record, paths.proof, paths.provenance])
  })

  test('is verified again where segments are malformed under a right digest', async () => {
    const store = await kept()
    const expected = plain(await resolve(undefined))
    const fields = ['mints', 'txid', 'name', 'domain', 'claimed', 'seed', 'spends', 'ownerLock', 'height']
    for (const field of [...fields, 'root', 'code', 'steps', 'vout', 'lockingScript']) {
      const change = (name: string, value: unknown) => (name === field ? -0.5 : value)
      const damaged = store.reopened((text) => sealed(JSON.stringify(JSON.parse(text.slice(65), change))))
      expect({ field, ...plain(await resolve(damaged.segments)) }).toEqual({ field, ...expected })
    }
    for (const body of ['null', '{'])
      expect(plain(await resolve(store.reopened(() => sealed(body)).segments))).toEqual(expected)
  })

  test('is verified again where segments were moved to other keys', async () => {
    const store = await kept()
    const texts = [...store.texts.values()]
    const moved = store.reopened((text) => texts[(texts.indexOf(text) + 1) % texts.length] ?? '')
    expect(plain(await resolve(moved.segments))).toEqual(plain(await resolve(undefined)))
  })

  test.each([
    ['fails', async () => await Promise.reject(new Error('no disk'))],
    ['never answers', () => new Promise<never>(() => {})],
  ])('is resolved with a store that %s', async (_, answer) => {
    const stores = [answer, async () => undefined].map((get) => new Segments({ store: { get, put: answer } }))
    const found = await Promise.all(stores.map(async (each) => plain(await resolve(each))))
    const expected = plain(await resolve(undefined))
    expect(found).toEqual([expected, expected])
  })

  test('is proven by one block if none was replaced: the highest', async () => {
    const store = (await kept()).reopened()
    headers.asked.length = 0
    await resolve(store.segments)
    expect(headers.asked).toEqual([second.txid])
  })

  test('is not taken back by an index that is behind', async () => {
    const store = await kept()
    const answer = { origin: formatOutpoint(origin), tip: { outpoint: first.outpoint(0), spent: false } }
    const behind = await startIndex(
      {
        [paths.record]: { body: answer },
        [`${paths.provenance}?known=${formatOutpoint(tip)}`]: { body: provenanceOf([mints.abc, first]) },
      },
      server.url,
    )
    expect(await resolve(store.segments, new Asked(), [behind.url])).toMatchObject({
      tip: { tip, sequence: 2 },
      spendStatus: 'unknown',
      reports: [{ verdict: 'stale' }],
    })
    // Nor by one that denies the name, beside what does not hold or fails, while a block still holds it.
    const denying = await startIndex({})
    const garbage = await startIndex({ [paths.record]: { body: answer }, [paths.proof]: { body: 'no' } })
    for (const segments of [store.segments, store.reopened().segments])
      for (const urls of [[denying.url], [denying.url, garbage.url], [garbage.url, denying.url, denying.url]])
        expect(await resolve(segments, new Asked(), urls)).toMatchObject({
          ...{ tip: { tip, sequence: 2 }, proven: true, spendStatus: 'unknown' },
          reports: expect.arrayContaining([expect.objectContaining({ verdict: 'denies' })]),
        })
    headers.gone.add(mints.abc.txid).add(first.txid).add(second.txid)
    await expect(resolve(store.reopened().segments, new Asked(), [denying.url])).rejects.toMatchObject({
      code: 'NOT_CLAIMED',
    })
    headers.gone.clear()
    // Nor is what is known forgotten.
    const asked = new Asked()
    await resolve(store.reopened().segments, asked)
    expect(asked.paths).toEqual([paths.record])
  })

  test('is not what an index says without proof', async () => {
    const store = await kept()
    const elsewhere = { origin: formatOutpoint(origin), tip: { outpoint: purse.outpoint(0), spent: false } }
    const liar = await startIndex({ [paths.record]: { body: elsewhere } }, server.url)
    await expect(resolve(store.segments, new Asked(), [liar.url])).rejects.toMatchObject({
      code: 'NO_PROOF',
      reports: [{ verdict: 'refuted' }],
    })
  })
})

test('what is resolved does not depend on what was resolved before, on damage, restarts or reorganisations', async () => {
  const tree = new MineTree()
  const { chain } = tree
  const names = ['a', 'b', 'ab', 'abc', 'ac', 'abd', 'ba', 'abce']
  for (const name of names) tree.mint(name)
  const places = new Map<string, { transaction: FakeTransaction; vout: number }>()
  const moves = ['ab', 'abc', 'abc', 'ba'].map((name) => {
    const held = places.get(name) ?? { transaction: tree.mintOf(name), vout: 2 }
    const transaction = chain.spend({ inputs: [held], outputs: [{ satoshis: 1, lockingScript: p2pkh(2) }] })
    places.set(name, { transaction, vout: 0 })
    return transaction
  })
  const all = [...tree.transactions, ...moves]
  const server = await servers.start(treeOf(chain.deployment))
  for (const each of all) await server.submit(beefOf(each), ['tm_names', 'tm_ordinals'])
  const heights = all.map(({ height }) => height)
  const known = new FakeHeaders(all)

  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ resolve: fc.subarray([...names, 'nobody'], { minLength: 1, maxLength: 4 }) }),
    },
    fc.record({ chainEndsAt: fc.constantFrom(...heights) }),
    fc.record({ restart: fc.nat({ max: 30 }) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), async (steps) => {
      let store = new OpenStore()
      let end = Math.max(...heights)
      const chainTracker = {
        isValidRootForHeight: async (root: string, height: number) =>
          height <= end && (await known.isValidRootForHeight(root, height)),
      }
      const outcome = async (name: string, segments?: Segments) =>
        await resolveName({
          ...{ name, deployment: chain.deployment, chainTracker, sources: [server.url] },
          ...(segments && { segments }),
        }).then(plain, ({ code, reports }: ResolutionError) => ({
          ...{ code, verdicts: reports.map(({ verdict }) => verdict) },
        }))
      for (const each of steps) {
        if ('chainEndsAt' in each) end = each.chainEndsAt
        else if ('restart' in each) {
          let at = 0
          store = store.reopened((text) => (at++ === each.restart ? text.slice(1) : text))
        } else {
          const { segments } = store
          const resolved = await Promise.all(each.resolve.map((name) => outcome(name, segments)))
          expect(resolved).toEqual(await Promise.all(each.resolve.map((name) => outcome(name))))
        }
      }
    }),
    { numRuns: rounds(6, 60) },
  )
})

test('only what is in blocks is kept', async () => {
  const chain = new FakeChain()
  const purse = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
  const [a, ab] = [chain.mint('a'), chain.mint('ab')]
  const abc = chain.mint('abc', { funding: [at(purse, 0)] })
  const [store, unchecked] = [new OpenStore(), new OpenStore()]
  const { deployment } = chain
  const headers = new FakeHeaders([chain.genesis, purse, a, ab])
  const check = { name: 'abc', deployment, chainTracker: headers, segments: store.segments }
  const proof = proofOf([chain.genesis, a, ab, purse, abc], { unproven: [abc] })
  expect(await verifiedWith({ ...check, proof })).toMatchObject({ proven: false })
  expect([...store.texts.values()].join()).toContain(ab.txid)
  expect([...store.texts.values()].join()).not.toContain(abc.txid)
  // To run its scripts takes the node that it spends.
  const part = proofOf([ab, purse, abc], { unproven: [abc] })
  expect(await verifiedWith({ ...check, proof: part })).toMatchObject({ proven: false })
  await verifiedWith({ ...check, chainTracker: 'scripts only', proof, segments: unchecked.segments })
  expect(unchecked.texts.size).toBe(0)
})

test('nothing is kept of what does not hold', async () => {
  const { deployment, line, headers } = namedWorld()
  const store = new OpenStore()
  const proof = proofOf(line)
  for (let at = 100; at < proof.length; at += 997) {
    const changed = proof.slice()
    changed[at] = (changed[at] ?? 0) ^ 1
    await verifiedWith({
      name: 'abc',
      deployment,
      chainTracker: headers,
      proof: changed,
      segments: store.segments,
    }).catch(() => undefined)
  }
  const whole = await verifyNameProof({ name: 'abc', deployment, chainTracker: headers, proof })
  const kept = new OpenStore()
  await verifiedWith({ name: 'abc', deployment, chainTracker: headers, proof, segments: kept.segments })
  for (const [key, text] of store.texts) expect([key, text]).toEqual([key, kept.texts.get(key)])
  expect(whole.proven).toBe(true)
})

describe('a store in files', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'minetree-segments-'))
  })
  afterEach(async () => await rm(folder, { recursive: true, force: true }))

  test('has what another process put there, readable by its owner alone', async () => {
    const { deployment, line, headers } = namedWorld()
    const question = { name: 'abc', deployment, chainTracker: headers }
    const expected = await verifiedWith({
      ...question,
      proof: proofOf(line),
      segments: new Segments({ store: new FileSegmentStore({ folder: join(folder, 'deep/down') }) }),
    })
    const segments = new Segments({ store: new FileSegmentStore({ folder: join(folder, 'deep/down') }) })
    expect(await verifiedWith({ ...question, proof: proofOf(line.slice(-1)), segments })).toEqual(expected)
    const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((each) =>
      each.isFile(),
    )
    expect(files.length).toBeGreaterThan(1)
    for (const file of files) {
      const path = join(file.parentPath, file.name)
      expect((await stat(path)).mode & 0o077).toBe(0)
      await writeFile(path, (await readFile(path)).subarray(1))
    }
    const damaged = new Segments({ store: new FileSegmentStore({ folder: join(folder, 'deep/down') }) })
    await expect(
      verifiedWith({ ...question, proof: proofOf(line.slice(-1)), segments: damaged }),
    ).rejects.toMatchObject(NO_GENESIS)
    expect(await verifiedWith({ ...question, proof: proofOf(line), segments: damaged })).toEqual(expected)
  })

  test('is left by no key', async () => {
    const store = new FileSegmentStore({ folder: join(folder, 'in') })
    for (const key of ['../out', 'a/../../out', 'a/b/c', '/a', 'a', 'a/.hidden', 'a/b\n']) {
      await expect(store.put(key, 'x')).rejects.toThrow(RangeError)
      await expect(store.get(key)).rejects.toThrow(RangeError)
    }
    expect(await readdir(folder)).toEqual([])
  })
})
