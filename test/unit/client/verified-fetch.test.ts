import type { ServerResponse } from 'node:http'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { encodePatch, PATCH_TYPE } from '../../../backend/src/protocol/patch.js'
import { encodeDelta } from '../../../backend/src/protocol/vcdiff.js'
import {
  createVerifiedFetch,
  type VerifiedFetchInit,
  type VerifiedFetchOptions,
} from '../../../src/client/verified-fetch.js'
import { type RouteAnswer, startIndex } from '../../support/client/name-index.js'
import {
  FakeHeaders,
  outpointBeef,
  proofOf,
  provenanceOf,
  recordsOf,
} from '../../support/client/name-proofs.js'
import { hostedServer } from '../../support/gateway/hosted.js'
import { directory, type File, text } from '../../support/gateway/site.js'
import { chunk, streamsOn } from '../../support/gateway/streams.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { useServers } from '../../support/server/test-server.js'
import { givenTime } from '../../support/server/waiting.js'

// A real server, and gateways before it that lie.

const servers = useServers()

const hosted = await hostedServer(servers)
const { server, chain } = hosted

const chainTracker = new FakeHeaders()
const mined = <Each extends FakeTransaction>(transaction: Each): Each => chainTracker.add(transaction)

async function inscribed(file: File): Promise<FakeTransaction> {
  const transaction = mined(chain.inscribe(file))
  await server.take(beefOf(transaction), ['tm_ordinals'])
  return transaction
}

const PAGE = '<!doctype html><h1>al</h1>'
for (const name of ['a', 'al']) mined(await hosted.mine(name))
const mint = await hosted.mine('al')
const hello = await inscribed(text('hello, world', 'text/plain; charset=utf-8'))
const other = await inscribed(text('other, world'))
const deep = await inscribed(text('deep down'))
const sub = await inscribed(directory({ 'deep.txt': deep.outpoint(0), 'index.html': hello.outpoint(0) }))
const site = mined(
  await hosted.show(
    { transaction: mint, vout: 2 },
    directory({
      'hello.txt': hello.outpoint(0),
      sub: sub.outpoint(0),
      'index.html': '_1',
      'a b': `ord://${deep.txid}`,
    }),
    text(PAGE, 'text/html'),
  ),
)
const moved = mined(await hosted.show({ transaction: site, vout: 0 }, 'lock'))

const fetcher = (gateways: string[], more: Partial<VerifiedFetchOptions> = {}) =>
  createVerifiedFetch({ gateways, profile: 'local', deployment: chain.deployment, chainTracker, ...more })

/** A gateway that lies on the given paths, below the server's own. */
const gateway = async (lies: Record<string, RouteAnswer> = {}): Promise<string> =>
  (await startIndex(lies, server.url)).url

const proof = (outpoint: string): string => `/svc/gateway/proof/${outpoint}`

/** Replaces text in bytes by other text of the same length. */
const swapped =
  (from: string, to: string) =>
  (body: Uint8Array): Uint8Array => {
    const bytes = Buffer.from(body)
    const at = bytes.indexOf(from)
    expect(at).toBeGreaterThan(0)
    bytes.write(to, at, 'latin1')
    return Uint8Array.from(bytes)
  }

const failure = async (fetching: Promise<unknown>): Promise<unknown> =>
  await fetching.then(
    () => 'no error',
    (error: unknown) => error,
  )

describe('what the server is honest about', () => {
  const at = site.outpoint(0)
  test.each([
    ['al/', 'text/html', PAGE],
    ['al', 'text/html', PAGE],
    ['al?raw', 'gw-fs/json', undefined],
    ['al/hello.txt', 'text/plain; charset=utf-8', 'hello, world'],
    ['al/a%20b', 'text/plain', 'deep down'],
    ['al/sub/deep.txt', 'text/plain', 'deep down'],
    ['al/sub/none.txt', 'text/plain; charset=utf-8', 'hello, world'],
    [`${at}/sub`, 'gw-fs/json', undefined],
    [`${at}:0/hello.txt`, 'application/name-claim', 'al'],
    [`${mint.outpoint(2)}:1/hello.txt`, 'text/plain; charset=utf-8', 'hello, world'],
    [`${moved.outpoint(0)}:-1/sub/`, 'text/plain; charset=utf-8', 'hello, world'],
    [`${mint.outpoint(2)}:-2`, 'application/name-claim', 'al'],
    [hello.txid, 'text/plain; charset=utf-8', 'hello, world'],
  ])('%s has the bytes and headers that the gateway sends', async (resource, type, body) => {
    const response = await fetcher([server.url])(resource)
    const headers = Object.fromEntries(response.headers)
    expect({ status: response.status, ...headers }).toMatchObject({
      ...{ status: 200, 'content-type': type, 'x-verified': 'headers' },
    })
    const bytes = Buffer.from(await response.arrayBuffer())
    if (body !== undefined) expect(bytes.toString()).toBe(body)
    const path = resource.startsWith('al') ? resource.replace('al', `${mint.outpoint(2)}:-1`) : resource
    let sent = await server.ask(`/content/${path}`)
    if (sent.status === 302) sent = await server.ask(String(sent.headers.location))
    expect(sent.body).toEqual(bytes)
    for (const name of ['content-type', 'content-length', 'etag', 'accept-ranges', 'x-outpoint'])
      expect({ [name]: headers[name] }).toEqual({ [name]: sent.headers[name] })
  })

  test('what directories lack is a verified 404', async () => {
    const response = await fetcher([server.url])(`${sub.outpoint(0)}/deep.txt/x`)
    expect(response.status).toBe(404)
    expect(response.verification).toMatchObject({ verified: 'headers', path: [{ height: sub.height }] })
  })

  test('HEAD, ranges and conditions are answered as the gateway does', async () => {
    const verified = fetcher([server.url])
    const whole = await verified('al/hello.txt')
    const tag = String(whole.headers.get('etag'))
    const questions: VerifiedFetchInit[] = [
      { method: 'HEAD' },
      { headers: { 'If-None-Match': `"x", W/${tag}` } },
      { headers: { 'If-None-Match': '*' } },
      ...['0-4', '7-', '-5', '3-100', '100-', '5-4', '-0', 'x'].map((range) => ({
        headers: { Range: `bytes=${range}` },
      })),
      { headers: { Range: 'bytes=0-4', 'If-Range': tag } },
      { headers: { Range: 'bytes=0-4', 'If-Range': '"other"' } },
    ]
    for (const init of questions) {
      const response = await verified('al/hello.txt', init)
      const headers = { ...(init.headers as Record<string, string>) }
      const { method = 'GET' } = init
      const sent = await server.ask(`/content/${hello.outpoint(0)}`, { method, headers })
      // An error of the gateway has a body, and no tag.
      const names = sent.status === 416 ? ['content-range'] : ['etag', 'content-range', 'content-type']
      const body = sent.status === 416 ? '' : sent.body.toString()
      expect([init, response.status, await response.text()]).toEqual([init, sent.status, body])
      for (const name of names)
        expect([init, response.headers.get(name)]).toEqual([init, sent.headers[name] ?? null])
    }
  })

  test('several ranges are answered with the whole file, as RFC 9110 allows', async () => {
    const response = await fetcher([server.url])('al/hello.txt', { headers: { Range: 'bytes=0-0,2-2' } })
    expect([response.status, await response.text()]).toEqual([200, 'hello, world'])
  })

  test('the response has the name, its ordinal and its tip, and how far gateways agree', async () => {
    const behind = await gateway({
      [`/svc/gateway/provenance/${mint.outpoint(2)}?known=${mint.outpoint(2)}`]: { status: 404, body: {} },
    })
    const gateways = [await gateway(), behind, server.url]
    const { verification } = await fetcher(gateways, { tipPolicy: 'majority' })('al/hello.txt')
    expect(verification).toMatchObject({
      ...{ verified: 'headers', name: 'al', tip: { agreedBy: 2, of: 3, at: expect.any(Number) } },
      ordinal: { sequence: 2, outpoint: { txid: moved.txid, vout: 0 }, origin: { txid: mint.txid, vout: 2 } },
      outpoint: { txid: hello.txid, vout: 0 },
      path: [{ height: site.height }, { height: hello.height }],
    })
    expect(await failure(fetcher(gateways, { tipPolicy: 'all' })('al/hello.txt'))).toMatchObject({
      ...{ code: 'NO_AGREEMENT', step: 'tip' },
    })
  })

  test.each([
    ['a name', 'al', '/svc/names/al'],
    ['an ordinal', `${mint.outpoint(2)}:-1`, proof(`${mint.outpoint(2)}:-1`)],
  ])('the tip of %s is asked for once for a whole site, and again when it is old', async (_, root, tip) => {
    const count = async (tipMaxAge: number): Promise<number> => {
      const asked: string[] = []
      const counting: typeof fetch = async (input, init) => {
        asked.push(new URL(String(input)).pathname)
        return await fetch(input, init)
      }
      const verified = fetcher([server.url], { fetch: counting, tipMaxAge })
      await Promise.all([verified(root), verified(`${root}/hello.txt`)])
      for (const path of ['', 'sub/', 'sub/deep.txt'])
        expect((await verified(`${root}/${path}`)).status).toBe(200)
      return asked.filter((path) => path === tip).length
    }
    expect(await count(60_000)).toBe(1)
    expect(await count(0)).toBeGreaterThan(2)
  })

  test('gateways that disagree about the tip of an ordinal are counted', async () => {
    const asked = `${mint.outpoint(2)}:-1`
    // It withholds the last step.
    const stale = await gateway({
      [proof(asked)]: { body: Uint8Array.from((await server.ask(proof(`${mint.outpoint(2)}:1`))).body) },
    })
    const { verification } = await fetcher([stale, server.url])(`${asked}/hello.txt`)
    expect(verification).toMatchObject({ ordinal: { sequence: 2 }, tip: { agreedBy: 1, of: 2 } })
    expect(await failure(fetcher([stale, server.url], { tipPolicy: 'majority' })(asked))).toMatchObject({
      ...{ code: 'NO_AGREEMENT', step: 'tip' },
    })
  })

  test('without headers nothing is more than unproven, and proofs may be required', async () => {
    const trust = { chainTracker: 'scripts only' } as const
    const response = await fetcher([server.url], trust)('al/hello.txt')
    expect(response.headers.get('x-verified')).toBe('unproven')
    const required = fetcher([server.url], { ...trust, requireProofs: true })
    expect(await failure(required(hello.txid))).toMatchObject({
      ...{ code: 'NOT_PROVEN', step: 'content', cause: { code: 'UNPROVEN' } },
    })
  })
})

describe('a gateway that lies', () => {
  /** A merkle path that leads to another block. */
  const otherBlock =
    (transaction: FakeTransaction) =>
    (body: Uint8Array): Uint8Array => {
      const subject = body.subarray(0, 40)
      return Uint8Array.from([...subject, ...beefOf(transaction, { height: transaction.height + 1 })])
    }
  const [HELLO, SITE, SUB] = [hello, site, sub].map((each) => proof(each.outpoint(0))) as [
    string,
    string,
    string,
  ]
  const TIP = proof(`${moved.outpoint(0)}:2`)
  const ORIGIN = proof(`${mint.outpoint(2)}:0`)
  const STEP = `${mint.outpoint(2)}:1`
  const NAME = '/svc/names/proof/al'
  const SINCE = `/svc/gateway/provenance/${mint.outpoint(2)}?known=${mint.outpoint(2)}`
  const swap = (from: string, to: string): RouteAnswer => ({ alter: swapped(from, to) })
  const shows = (path: string): RouteAnswer => ({ alter: () => Uint8Array.from(others[path] ?? []) })
  const lies: [what: string, resource: string, at: string, lie: RouteAnswer, step: string, cause?: string][] =
    [
      ['a byte of a file', 'al/hello.txt', HELLO, swap('hello', 'jello'), 'content', 'BAD_BEEF'],
      ['a file', 'al/hello.txt', HELLO, shows(proof(other.outpoint(0))), 'content', 'OTHER_OUTPUT'],
      [
        'an entry',
        `${site.outpoint(0)}/hello.txt`,
        SITE,
        swap(hello.txid, other.txid),
        'directory',
        'BAD_BEEF',
      ],
      ['an entry of a name', 'al/hello.txt', TIP, swap(hello.txid, other.txid), 'provenance', 'UNPLACED'],
      ['an entry below', 'al/sub/deep.txt', SUB, swap('deep.txt', 'keep.txt'), 'directory', 'BAD_BEEF'],
      ['a step', 'al/hello.txt', SINCE, swap('hello.txt', 'jello.txt'), 'provenance'],
      [
        'a step of an ordinal',
        `${STEP}/hello.txt`,
        proof(STEP),
        swap('hello.txt', 'jello.txt'),
        'provenance',
      ],
      ['what step it is', `${STEP}/hello.txt`, proof(STEP), shows(ORIGIN), 'provenance', 'NOT_DESCENDED'],
      ['the proof of a name', 'al/hello.txt', NAME, shows('/svc/names/proof/a'), 'name'],
      ['the proof of a mint', `${mint.outpoint(2)}:0`, NAME, { status: 404, body: {} }, 'provenance'],
      ['a merkle path', 'al/hello.txt', HELLO, { alter: otherBlock(hello) }, 'content', 'BAD_PATH'],
    ]
  const others: Record<string, Buffer> = {}
  beforeAll(async () => {
    for (const path of [proof(other.outpoint(0)), ORIGIN, '/svc/names/proof/a'])
      others[path] = (await server.ask(path)).body
  })

  test.each(lies)(
    'swaps %s, and the fetch fails there; with another gateway it does not',
    async (_, resource, at, lie, step, cause) => {
      const lying = await gateway({ [at]: lie })
      const error = await failure(fetcher([lying])(resource))
      expect(error).toMatchObject({
        name: 'VerifiedFetchError',
        step,
        ...(cause && { cause: { code: cause } }),
      })
      for (const order of ['in order', 'in parallel'] as const) {
        const response = await fetcher([lying, server.url], { order })(resource)
        expect(await response.text()).toBe(await (await fetcher([server.url])(resource)).text())
      }
    },
  )

  test('only as a cache remembers it, in a block that was replaced, is asked again past the cache', async () => {
    const lying = await gateway({ [proof(hello.txid)]: { alter: otherBlock(hello) } })
    const fetch: typeof globalThis.fetch = (url, init) =>
      globalThis.fetch(init?.cache === 'reload' ? String(url).replace(lying, server.url) : url, init)
    expect(await (await fetcher([lying], { fetch })(hello.txid)).text()).toBe('hello, world')
  })

  test('in a block that is unknown, and the chain tracker fails: nothing is refuted', async () => {
    const failing = { isValidRootForHeight: () => Promise.reject(new Error('no header there')) }
    expect(await failure(fetcher([server.url], { chainTracker: failing })(hello.txid))).toMatchObject({
      ...{ code: 'NO_HEADERS', step: 'headers' },
    })
  })

  test('in a block over which the chain tracker hangs, takes only its share of the time', async () => {
    const hangs = {
      isValidRootForHeight: async (root: string, height: number) =>
        height === hello.height
          ? await chainTracker.isValidRootForHeight(root, height)
          : new Promise<never>(() => {}),
    }
    const lying = await gateway({ [proof(hello.txid)]: { alter: otherBlock(hello) } })
    const text = await givenTime(1000, async (timeout) => {
      const fetching = fetcher([lying, server.url], { chainTracker: hangs, timeout })(hello.txid)
      return await (await fetching).text()
    })
    expect(text).toBe('hello, world')
  })

  test.each(['in order', 'in parallel'] as const)(
    'says nothing about a name, or a file: another gateway shows both in time, asked %s',
    async (order) => {
      const silent = { does: () => {} }
      const hanging = await gateway({
        '/svc/names/al': silent,
        [proof(hello.outpoint(0))]: silent,
        [proof(`${moved.outpoint(0)}:2`)]: silent,
        [proof(`${mint.outpoint(2)}:-1`)]: silent,
      })
      const resources = ['al/hello.txt', `${mint.outpoint(2)}:-1/hello.txt`]
      const texts = await givenTime(1000, async (timeout) => {
        const verified = fetcher([hanging, server.url], { order, timeout })
        return await Promise.all(resources.map(async (resource) => await (await verified(resource)).text()))
      })
      expect(texts).toEqual(['hello, world', 'hello, world'])
    },
  )

  test('says nothing once is asked after the others for a while', async () => {
    await givenTime(1000, async (timeout) => {
      const hanging = await startIndex({ [proof(hello.txid)]: { does: () => {} } }, server.url)
      const verified = fetcher([hanging.url, server.url], { timeout })
      expect(await (await verified(hello.txid)).text()).toBe('hello, world')
      expect(await (await verified(other.txid)).text()).toBe('other, world')
      expect(hanging.asked).toEqual([proof(hello.txid)])
    })
  })

  test('is right but late is asked first once, and not for every file', async () => {
    const bytes = Uint8Array.from((await server.ask(proof(hello.txid))).body)
    let now = performance.now()
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
    onTestFinished(() => clock.mockRestore())
    const does = (response: ServerResponse): void => {
      now += 2000
      response.writeHead(200).end(bytes)
    }
    const late = await startIndex({ [proof(hello.txid)]: { does } }, server.url)
    const verified = fetcher([late.url, server.url], { cacheBytes: 0 })
    expect(await (await verified(hello.txid)).text()).toBe('hello, world')
    for (const { txid } of [other, deep, hello]) expect((await verified(txid)).status).toBe(200)
    expect(late.asked).toEqual([proof(hello.txid)])
  })

  test('fails once after many good answers is not the last to be asked', async () => {
    let isFailing = false
    const does = (response: ServerResponse): void => {
      isFailing = true
      response.writeHead(500).end()
    }
    const failing = await startIndex({ [proof(hello.txid)]: { does } }, server.url)
    const verified = fetcher([failing.url, server.url], { cacheBytes: 0 })
    for (let left = 8; left > 0; left--) await verified(other.txid)
    await verified(hello.txid)
    expect(isFailing).toBe(true)
    failing.asked.length = 0
    await verified(other.txid)
    expect(failing.asked).toEqual([proof(other.txid)])
  })

  test('shows another mint of a name, in no block, so that a genuine mint would start no lineage', async () => {
    const tree = new FakeChain()
    const coin = { satoshis: 1, lockingScript: p2pkh(0) }
    const funding = mined(tree.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] }))
    const before = mined(
      tree.spend({
        inputs: [{ transaction: funding, vout: 0 }],
        outputs: [coin, { satoshis: 1, lockingScript: inscriptionScript(text('before')) }],
      }),
    )
    const purse = mined(tree.spend({ inputs: [], outputs: [{ satoshis: 500, lockingScript: OPEN_LOCK }] }))
    const root = tree.node('')
    const genuine = mined(tree.mint('x', { funding: [0, 1].map((vout) => ({ transaction: before, vout })) }))
    const second = tree.mint('x', { from: root, funding: [{ transaction: purse, vout: 0 }], trailing: [] })
    const asked = `${genuine.outpoint(2)}:0`
    const records = recordsOf([tree.genesis, funding, before, genuine])
    const lying = await gateway({
      [proof(asked)]: { body: outpointBeef({ txid: before.txid, vout: 1 }, records) },
      '/svc/names/proof/x': {
        body: proofOf([tree.genesis, purse, second], { unproven: [tree.genesis, second] }),
      },
    })
    const honest = await gateway({
      [proof(asked)]: { body: outpointBeef({ txid: genuine.txid, vout: 2 }, records) },
      '/svc/names/proof/x': { body: proofOf([tree.genesis, genuine], { unproven: [tree.genesis] }) },
    })
    const { deployment } = tree
    expect(await failure(fetcher([lying], { deployment })(asked))).toMatchObject({
      ...{ step: 'provenance', cause: { code: 'NOT_PROVEN', cause: { code: 'UNPROVEN' } } },
    })
    const response = await fetcher([honest], { deployment })(asked)
    expect(response.verification.ordinal).toMatchObject({ origin: { txid: genuine.txid, vout: 2 } })
  })

  test('does not have it, has blocked it, or answers without end', async () => {
    const gone = await gateway({ [proof(hello.txid)]: { status: 404, body: {} } })
    const blocked = await gateway({ [proof(hello.txid)]: { status: 451, body: {} } })
    const endless = await gateway({
      [proof(hello.txid)]: {
        does(response) {
          const more = setInterval(() => response.write('more'), 1)
          response.on('close', () => clearInterval(more))
        },
      },
    })
    const outcome = async (url: string, more = {}) => await failure(fetcher([url], more)(hello.txid))
    expect(await outcome(gone)).toMatchObject({ code: 'NOT_FOUND', step: 'content' })
    expect(await outcome(blocked)).toMatchObject({ code: 'BLOCKED' })
    const failing = await gateway({ [proof(hello.txid)]: { status: 500, body: 'oh no' } })
    for (const order of ['in order', 'in parallel'] as const) {
      const asking = fetcher([failing, gone, gone], { order })(hello.txid)
      expect(await failure(asking)).toMatchObject({ code: 'NOT_FOUND' })
    }
    for (const [bound, code] of [
      [{ maxBytes: 100 }, 'TOO_LARGE'],
      [{ timeout: 50 }, 'TIMEOUT'],
    ] as const)
      expect(await outcome(endless, bound)).toMatchObject({ code: 'NO_ANSWER', cause: { code } })
    const stop = new AbortController()
    const reason = new Error('enough')
    const fetching = fetcher([endless])(hello.txid, { signal: stop.signal })
    stop.abort(reason)
    expect(await failure(fetching)).toBe(reason)
  })
})

test('what names no resource is said to', async () => {
  const zeros = '0'.repeat(64)
  const code = 'BAD_RESOURCE'
  for (const resource of ['Al/x', '', '/al', `${zeros}_x`, `${zeros}_0:x`, 'al/%zz'])
    expect(await failure(fetcher([server.url])(resource)), resource).toMatchObject({ code, step: 'resource' })
})

describe('a patch', () => {
  const source = utf8('hello, world')
  const patchOn = (base: FakeTransaction, target: string): File => ({
    contentType: PATCH_TYPE,
    body: encodePatch({ base: parseOutpoint(base.outpoint(0)), delta: encodeDelta(source, utf8(target)) }),
  })
  const at = ({ outpoint, height }: FakeTransaction) => ({ outpoint: parseOutpoint(outpoint(0)), height })

  test('is what it makes of verified outputs, also in a directory, and its record when that is asked for', async () => {
    const first = await inscribed(patchOn(hello, 'hello, world'))
    const second = await inscribed(patchOn(first, 'hello, world, again'))
    const folder = await inscribed(directory({ page: second.outpoint(0) }))
    const verified = fetcher([server.url])
    for (const resource of [second.outpoint(0), `${folder.outpoint(0)}/page`]) {
      const response = await verified(resource)
      const sent = await server.ask(`/content/${resource}`)
      expect(await response.text()).toBe('hello, world, again')
      expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
      expect(response.headers.get('etag')).toBe(sent.headers.etag)
      expect(response.verification).toMatchObject({ verified: 'headers', bases: [at(hello), at(first)] })
      const record = await verified(`${resource}?raw`)
      expect(record.headers.get('content-type')).toBe(PATCH_TYPE)
      expect(record.verification.bases).toBeUndefined()
    }
    const stream = await verified(second.outpoint(0), { stream: true })
    expect(stream.headers.get('content-type')).toBe(PATCH_TYPE)
    await stream.body?.cancel()
  })

  test('on what is in no block is unproven', async () => {
    const base = chain.inscribe(text('hello, world'))
    await server.take(beefOf(base), ['tm_ordinals'])
    const patch = await inscribed(patchOn(base, 'hello'))
    expect(await failure(fetcher([server.url])(patch.outpoint(0)))).toMatchObject({ code: 'NOT_PROVEN' })
    const trusting = fetcher([server.url], { chainTracker: 'scripts only' })
    expect((await trusting(patch.outpoint(0))).verification.verified).toBe('unproven')
  })

  test('is refused if a gateway changes what it is built on, or does not have it', async () => {
    const patch = await inscribed(patchOn(hello, 'hello, world, again'))
    const base = hello.outpoint(0)
    const lying = await gateway({ [proof(base)]: { alter: swapped('hello', 'jello') } })
    const lone = await inscribed(patchOn(chain.inscribe(text('hello, world')), 'hello'))
    for (const [url, { outpoint }, code] of [
      [lying, patch, 'NOT_PROVEN'],
      [server.url, lone, 'NOT_FOUND'],
    ] as const)
      expect(await failure(fetcher([url])(outpoint(0)))).toMatchObject({ code, step: 'content' })
  })

  test('that cannot be applied is an error, as are seventeen on each other', async () => {
    const { body } = patchOn(hello, '')
    const bad = await inscribed({ contentType: PATCH_TYPE, body: body.subarray(0, 42) })
    const code = 'BAD_PATCH'
    expect(await failure(fetcher([server.url])(bad.outpoint(0)))).toMatchObject({ code, step: 'content' })
    let last = hello
    for (let count = 1; count <= 17; count++) last = await inscribed(patchOn(last, 'hello, world'))
    expect(await failure(fetcher([server.url])(last.outpoint(0)))).toMatchObject({ code })
  })
})

describe('a stream', () => {
  const lives = streamsOn(server, chain)
  let steps: FakeTransaction[]
  const at = (index: number): string => (steps[index] as FakeTransaction).outpoint(0)
  beforeAll(async () => {
    steps = await lives.streamOf(['one ', 'two ', 'three'])
    for (const step of steps) mined(step)
  })
  const streamed = (gateways: string[], more: Partial<VerifiedFetchOptions> = {}) =>
    fetcher(gateways, more)(at(0), { stream: true })

  /** The chunk that goes on from an output. */
  const goingOn = (transaction: FakeTransaction): FakeTransaction =>
    chain.spend({
      inputs: [{ transaction, vout: 0 }],
      outputs: [{ satoshis: 1, lockingScript: chunk('two') }],
    })

  test('is passed on chunk by chunk, and says how far its end is agreed upon', async () => {
    const response = await streamed([server.url, server.url])
    expect(await response.text()).toBe('one two three')
    expect(await response.verification.end).toMatchObject({ agreedBy: 2, of: 2, verified: 'headers' })
  })

  test('says at its end whether all of its chunks are in blocks', async () => {
    const lockingScript = inscriptionScript({ ...text('one ', 'image/x-test'), lock: OPEN_LOCK })
    const open = mined(chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript }] }))
    const next = goingOn(open)
    const unmined = await gateway({
      [proof(open.outpoint(0))]: { body: provenanceOf([open]) },
      [`${proof(open.outpoint(0))}?next`]: { body: provenanceOf([open, next], { unproven: [next] }) },
    })
    const response = await fetcher([unmined])(open.outpoint(0), { stream: true })
    expect(await response.text()).toBe('one two')
    expect(await response.verification.end).toMatchObject({ verified: 'unproven' })
  })

  test('does not go on from an output that is no 1-sat coin, whatever spends it', async () => {
    const first = mined(chain.inscribe({ ...text('one ', 'image/x-test'), satoshis: 2 }))
    const next = mined(goingOn(first))
    const lying = await gateway({
      [proof(first.outpoint(0))]: { body: provenanceOf([first]) },
      [`${proof(first.outpoint(0))}?next`]: { body: provenanceOf([first, next]) },
    })
    expect(await (await fetcher([lying])(first.outpoint(0), { stream: true })).text()).toBe('one ')
  })

  test('that is not read to its end has none', async () => {
    const response = await streamed([server.url])
    await response.body?.cancel()
    expect(await failure(response.verification.end as Promise<unknown>)).toMatchObject({ name: 'AbortError' })
    const head = await fetcher([server.url])(at(0), { stream: true, method: 'HEAD' })
    expect([head.body, head.verification.end]).toEqual([null, undefined])
  })

  test('breaks at a chunk that does not hold', async () => {
    const lying = await gateway({ [`${proof(at(1))}?next`]: { alter: swapped('three', 'seven') } })
    const response = await streamed([lying])
    const read: string[] = []
    const reading = (async () => {
      const reader = (response.body as ReadableStream<Uint8Array>).getReader()
      for (let each = await reader.read(); !each.done; each = await reader.read())
        read.push(Buffer.from(each.value).toString())
    })()
    expect(await failure(reading)).toMatchObject({ code: 'NOT_PROVEN', step: 'stream' })
    expect(read).toEqual(['one ', 'two '])
    expect(await failure(response.verification.end as Promise<unknown>)).toMatchObject({ step: 'stream' })
  })

  test('goes on where another gateway shows a chunk that one withholds', async () => {
    const short = await gateway({ [`${proof(at(0))}?next`]: { status: 404, body: {} } })
    expect(await (await streamed([short, server.url])).text()).toBe('one two three')
    expect(await (await streamed([short])).text()).toBe('one ')
  })
})
