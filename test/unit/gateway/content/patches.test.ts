import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Response } from 'express'
import { vi } from 'vitest'
import { outpointLabel } from '../../../../backend/src/protocol/host-label.js'
import { monotonic } from '../../../../backend/src/protocol/monotonic.js'
import { parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { encodePatch, PATCH_TYPE } from '../../../../backend/src/protocol/patch.js'
import { encodeDelta } from '../../../../backend/src/protocol/vcdiff.js'
import { afterLong, LongRead, LongReads } from '../../../../src/gateway/content/directory.js'
import { Bodies } from '../../../../src/server/cache/bodies.js'
import { purge } from '../../../../src/server/store/facts/purge.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { binaryDirectory, directory, type File, publisher, text } from '../../../support/gateway/site.js'
import { chunk, streamPath, streamsOn } from '../../../support/gateway/streams.js'
import { delta, number } from '../../../support/protocol/deltas.js'
import { beefOf, FakeChain, inscriptionScript } from '../../../support/protocol/fake-chain.js'
import { type Answer, OPERATOR, type TestServer, useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const chain = new FakeChain()
const server = await servers.start(OPERATOR)
const publish = publisher({ server, chain })

/** A patch that makes a file of another one. */
function patchOf(base: string, source: Uint8Array, target: Uint8Array): File {
  return {
    contentType: PATCH_TYPE,
    body: encodePatch({ base: parseOutpoint(base), delta: encodeDelta(source, target) }),
  }
}

const sha256 = (body: Uint8Array): string => createHash('sha256').update(body).digest('hex')
const PAGE = text('<h1>A page</h1>\n'.repeat(50), 'text/html')
const NEXT = Buffer.from(`${'<h1>A page</h1>\n'.repeat(50)}<p>and more`)

/** A page, and a patch on it. */
async function patchedPage(to = server, page = PAGE, next: Uint8Array = NEXT) {
  const on = to === server ? publish : publisher({ server: to, chain })
  const base = await on(page)
  const patch = patchOf(base.outpoint(0), page.body, next)
  return { base, patch, patched: await on(patch) }
}

function expectBad(answer: Answer, problem: string): void {
  expectError(answer, { status: 400, code: 'BAD_PATCH', error: expect.stringContaining(problem) })
}

test('a patch is the page that it makes, as if that were inscribed', async () => {
  const { patch, patched } = await patchedPage()
  const whole = await publish({ contentType: PAGE.contentType, body: NEXT })
  const made = await server.ask(`/content/${patched.outpoint(0)}`)
  const inscribed = await server.ask(`/content/${whole.outpoint(0)}`)
  expect(made.body).toEqual(NEXT)
  const { 'x-outpoint': outpoint, 'x-request-id': _, date: __, ...headers } = made.headers
  expect(outpoint).toBe(patched.outpoint(0))
  expect(inscribed.headers).toMatchObject(headers)
  expect(headers).toMatchObject({
    'content-type': 'text/html',
    'content-security-policy': expect.stringContaining('sandbox'),
    'cache-control': 'public, max-age=31536000, immutable',
  })
  for (const path of [`/content/${patched.outpoint(0)}?raw`, `/content/${patched.outpoint(0)}/?raw`]) {
    const { headers, body } = await server.ask(path)
    expect([headers['content-type'], body]).toEqual([PATCH_TYPE, Buffer.from(patch.body)])
  }
})

test('a patch has ranges, conditions and a head', async () => {
  const { patched } = await patchedPage()
  const path = `/content/${patched.outpoint(0)}`
  const { headers } = await server.ask(path, { method: 'HEAD' })
  expect(headers['content-length']).toBe(String(NEXT.length))
  const part = await server.ask(path, { headers: { Range: 'bytes=-8' } })
  expect([part.status, part.body.toString()]).toEqual([206, 'and more'])
  expect(part.headers['content-range']).toBe(`bytes ${NEXT.length - 8}-${NEXT.length - 1}/${NEXT.length}`)
  expect((await server.ask(path, { headers: { Range: `bytes=${NEXT.length}-` } })).status).toBe(416)
  expect((await server.ask(path, { headers: { 'If-None-Match': headers.etag ?? '' } })).status).toBe(304)
})

test('sixteen patches on each other are shown, and seventeen are an error', async () => {
  let [base, source] = [(await publish(PAGE)).outpoint(0), PAGE.body]
  for (let at = 1; at <= 17; at++) {
    const target = Buffer.from(`${Buffer.from(source)}${at}`)
    ;[base, source] = [(await publish(patchOf(base, source, target))).outpoint(0), target]
    const answer = await server.ask(`/content/${base}`)
    if (at < 17) expect([answer.headers['content-type'], answer.body]).toEqual(['text/html', target])
    else expectBad(answer, 'more than 16 patches')
  }
  expect((await server.ask(`/content/${base}?raw`)).headers['content-type']).toBe(PATCH_TYPE)
})

test('a base that is not here is named, until it comes', async () => {
  const base = chain.inscribe(PAGE)
  const patched = await publish(patchOf(base.outpoint(0), PAGE.body, NEXT))
  const path = `/content/${patched.outpoint(0)}`
  const error = expect.stringContaining(base.outpoint(0))
  for (let again = 0; again < 2; again++)
    expectError(await server.ask(path), { status: 404, code: 'NOT_FOUND', error })
  expect((await server.ask(`${path}?raw`)).status).toBe(200)
  await server.submit(beefOf(base), ['tm_ordinals'])
  expect((await server.ask(path)).body).toEqual(NEXT)
})

test.each<[string, Uint8Array, string]>([
  ['no record', Buffer.from('00'), 'shorter than 37 bytes'],
  [
    'a delta that copies beyond the base',
    delta({ segment: '01 8f7f 00', makes: 0 }),
    'copies from bytes up to',
  ],
])('%s is no patch', async (what, bytes, problem) => {
  const base = parseOutpoint((await publish(PAGE)).outpoint(0))
  const body = what === 'no record' ? bytes : encodePatch({ base, delta: bytes })
  const bad = await publish({ contentType: PATCH_TYPE, body })
  for (let again = 0; again < 2; again++) expectBad(await server.ask(`/content/${bad.outpoint(0)}`), problem)
})

test('only the exact type is a patch', async () => {
  const { patch } = await patchedPage()
  const other = await publish({ ...patch, contentType: `${PATCH_TYPE}; charset=utf-8` })
  expect((await server.ask(`/content/${other.outpoint(0)}`)).body).toEqual(Buffer.from(patch.body))
})

describe('nothing that is blocked is shown through a patch', () => {
  test.each(['base', 'patch', 'content of the base', 'what it makes'] as const)('%s', async (which) => {
    const page = text(`<h1>${which}</h1>`.repeat(20), 'text/html')
    const { base, patched } = await patchedPage(server, page, Buffer.from(`${page.body}${which}`))
    const path = `/content/${patched.outpoint(0)}`
    const made = await server.ask(path)
    expect(made.status).toBe(200)
    const blocked = {
      base: { outpoint: base.outpoint(0) },
      patch: { outpoint: patched.outpoint(0) },
      'content of the base': { sha256: sha256(page.body) },
      'what it makes': { sha256: sha256(made.body) },
    }
    await server.block(blocked[which])
    for (let again = 0; again < 2; again++)
      expectError(await server.ask(path), { status: 451, code: 'BLOCKED' })
    await server.unblock(blocked[which])
    expect((await server.ask(path)).body).toEqual(made.body)
  })

  test('a base that was purged', async () => {
    const before = await servers.start()
    const { base, patched } = await patchedPage(before)
    await before.stop()
    await purge({ folder: before.dataDir }, [parseOutpoint(base.outpoint(0))], 'an order')
    const after = await servers.start({ DATA_DIR: before.dataDir })
    expectError(await after.ask(`/content/${patched.outpoint(0)}`), { status: 451, code: 'BLOCKED' })
  })
})

describe('directories', () => {
  test('a file of a directory may be a patch', async () => {
    const { patched, patch } = await patchedPage()
    const site = await publish(directory({ '.': patched.outpoint(0), page: patched.outpoint(0) }))
    for (const path of ['', '/', '/page']) {
      const { headers, body } = await server.ask(`/content/${site.outpoint(0)}${path}`)
      expect([headers['content-type'], body]).toEqual(['text/html', NEXT])
    }
    expect((await server.ask(`/content/${site.outpoint(0)}/page?raw`)).body).toEqual(Buffer.from(patch.body))
  })

  test.each([
    ['short', 3],
    ['long', 2000],
  ])('a patch may make a %s directory, whose siblings are outputs of the patch', async (_, entries) => {
    const names = Array.from({ length: entries }, (_, at) => [`file ${at}`, `_1`] as const)
    const before = directory(Object.fromEntries(names))
    const after = directory(Object.fromEntries([...names, ['index.html', '_2']]))
    const base = await publish(before, text('old'))
    const site = await publish(patchOf(base.outpoint(0), before.body, after.body), text('new'), text('index'))
    const at = (path: string) => server.ask(`/content/${site.outpoint(0)}${path}`)
    expect((await at('/file%202')).body.toString()).toBe('new')
    expect((await at('/missing')).body.toString()).toBe('index')
    expect((await at('')).headers.location).toBe(`/content/${site.outpoint(0)}/index.html`)
    expect((await at('?raw')).headers['content-type']).toBe(PATCH_TYPE)
    const links = await publish(binaryDirectory({ link: '_1', sub: site.outpoint(0) }, ['link']), text('sub'))
    const { body } = await server.ask(`/content/${links.outpoint(0)}/link/index.html?raw`)
    expect(body.toString()).toBe('index')
  })

  test('a site may have its redirects and its root as patches', async () => {
    const host = await servers.start({ GATEWAY_HOST: 'names.example' })
    const on = publisher({ server: host, chain })
    const [rules, more] = [text('/a /b 301\n'), text('/a /b 301\n/c /d 302\n')]
    const oldRules = await on(rules)
    const newRules = await on(patchOf(oldRules.outpoint(0), rules.body, more.body))
    const map = directory({ _redirects: newRules.outpoint(0) })
    const base = await on(directory({}))
    const site = await on(patchOf(base.outpoint(0), directory({}).body, map.body))
    const { headers } = await host.ask(`/content/${site.outpoint(0)}`)
    expect(headers['content-type']).toContain('application/json')
    for (const query of ['', '?raw']) {
      const label = outpointLabel(parseOutpoint(site.outpoint(0)))
      const sent = { headers: { Host: `${label}.c.names.example` } }
      const answer = await host.ask(`/c${query}`, sent)
      expect([answer.status, answer.headers.location]).toEqual([302, `/d${query}`])
    }
  })
})

test('a stream ends before a patch, and one that begins with a patch has its record', async () => {
  const { patch } = await patchedPage()
  const { streamOf, goOn } = streamsOn(server, chain)
  const steps = await goOn(await streamOf(['one, ', 'two']), [inscriptionScript(patch), chunk('three')])
  const sent = async (step: number) => (await server.ask(streamPath(steps[step]))).body
  expect((await sent(0)).toString()).toBe('one, two')
  expect((await sent(2)).subarray(0, patch.body.length)).toEqual(Buffer.from(patch.body))
})

test('metadata is that of the record', async () => {
  const { patch, patched } = await patchedPage()
  expect((await server.ask(`/svc/gateway/metadata/${patched.outpoint(0)}`)).json).toMatchObject({
    contentType: PATCH_TYPE,
    contentLength: patch.body.length,
    sha256: sha256(patch.body),
  })
})

test('compressed text is uncompressed for a client that does not take it', async () => {
  const [before, after] = [gzipSync('a{}'.repeat(30)), gzipSync('b{}'.repeat(30))]
  const { patched } = await patchedPage(server, { contentType: 'text/css', body: before }, after)
  const path = `/content/${patched.outpoint(0)}`
  const identity = { headers: { 'Accept-Encoding': 'identity' } }
  const answers = [await server.ask(path), await server.ask(path, identity)]
  expect(answers.map(({ headers, body }) => [headers['content-encoding'], body])).toEqual([
    ['gzip', after],
    [undefined, Buffer.from('b{}'.repeat(30))],
  ])
})

describe('a long body', () => {
  const long = Buffer.alloc(9_000_000, 'a long body, ')
  const changed = Buffer.from(long)
  changed.write('another', 8_000_000)
  const hex = (value: number): string => Buffer.from(number(value)).toString('hex')
  const change = delta({
    segment: `01 ${hex(long.length)} 00`,
    makes: long.length,
    data: Buffer.from('another').toString('hex'),
    codes: `13 ${hex(8_000_000)} 08 13 ${hex(999_993)}`,
    addresses: `00 ${hex(8_000_007)}`,
  })

  async function expectMade(at: TestServer): Promise<string> {
    const on = publisher({ server: at, chain })
    const base = await on({ contentType: 'application/x-test', body: long })
    const body = encodePatch({ base: parseOutpoint(base.outpoint(0)), delta: change })
    const patched = await on({ contentType: PATCH_TYPE, body })
    const path = `/content/${patched.outpoint(0)}`
    for (let again = 0; again < 2; again++) {
      const answers = await Promise.all(Array.from({ length: 3 }, () => at.ask(path)))
      for (const { status, body } of answers) expect([status, body.equals(changed)]).toEqual([200, true])
      const part = await at.ask(path, { headers: { Range: 'bytes=8000000-8000006' } })
      expect(part.body.toString()).toBe('another')
    }
    return path
  }

  test('is made in several turns, for all who ask, and kept', async () => {
    await expectMade(server)
  })

  test('is made again where there is no memory for it, but once for all ranges of an answer', async () => {
    const narrow = await servers.start({ MAX_CACHED_BYTES: '1048576' })
    const path = await expectMade(narrow)
    const made = vi.spyOn(Bodies.prototype, 'keepMade')
    const Range = 'bytes=0-5,8000000-8000006,20-22,100-120,-3'
    const { headers, body } = await narrow.ask(path, { headers: { Range } })
    expect(headers['content-type']).toContain('multipart/byteranges')
    expect(body.toString()).toContain('\r\n\r\nanother\r\n')
    // What the answers before it have held may still be there.
    expect(made.mock.calls.length).toBeLessThanOrEqual(1)
    made.mockRestore()
  })

  test('is no longer than content may be', async () => {
    const narrow = await servers.start({ MAX_CONTENT_BYTES: '10000' })
    const page = text('x'.repeat(6000))
    const { patched } = await patchedPage(narrow, page, Buffer.concat([page.body, page.body]))
    expectError(await narrow.ask(`/content/${patched.outpoint(0)}`), {
      status: 404,
      code: 'NOT_FOUND',
      error: expect.stringContaining('makes 12000 bytes, and 10000 are allowed'),
    })
  })
})

test('of what takes long, no more than so many wait', async () => {
  const reads = new LongReads(2)
  const read = (key: string): Promise<unknown> => {
    try {
      return reads.await(key, function* () {
        yield
        return key
      })
    } catch (error) {
      if (!(error instanceof LongRead)) throw error
      return error.read()
    }
  }
  const [first, again] = [read('a'), read('a')]
  expect(again).toBe(first)
  const second = read('b')
  expect(() => read('c')).toThrow(expect.objectContaining({ code: 'NOT_READY' }))
  expect([await first, await second]).toMatchObject([{ value: 'a' }, { value: 'b' }])
  await read('c')
  expect(reads.isBusy).toBe(false)
})

test('what takes long is counted for the client by the time that it takes the processor', async () => {
  const reads = new LongReads()
  const counted: number[] = []
  const response = { locals: { countTransactions: (count: number) => counted.push(count) } }
  const answer = afterLong(response as unknown as Response, (ahead) => {
    const known = ahead?.get('a')
    if (known !== undefined) return known
    return reads.await('a', function* () {
      const start = monotonic()
      while (monotonic() - start < 25);
      yield
      return 'made'
    })
  })
  expect([await answer, counted.length]).toEqual(['made', 1])
  // Ten reads.
  expect(counted[0]).toBeGreaterThanOrEqual(1000)
})
