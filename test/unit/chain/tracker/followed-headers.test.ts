import type { ChainTip } from '../../../../src/chain/sources/chain-source.js'
import type { HeaderSourceKind, SourceAddress } from '../../../../src/chain/sources/source-address.js'
import {
  FollowedHeaders,
  type FollowedHeadersOptions,
} from '../../../../src/chain/tracker/followed-headers.js'
import { sharedHeaders, shareHeaders } from '../../../../src/server/writer/open-headers.js'
import { keptLog } from '../../../support/gateway/faults.js'
import { type Branch, type Header, HeaderChain } from '../../../support/server/header-chain.js'
import { type HeaderService, type Mood, startHeaderService } from '../../../support/server/header-service.js'
import { loopTurns, until } from '../../../support/server/waiting.js'
import { type DerivingStore, openStore } from '../../../support/storage/stores.js'

// A chain of headers of our own, fetched from services that speak as the real ones do, and that fail and lie.

const FIRST = 800_000
const KINDS = ['junglebus', 'chaintracks', 'whatsonchain', 'headersservice'] as const
type Kind = (typeof KINDS)[number]

/** A clock that stands still until time is said to pass. */
function clockAt(time: number): { now: () => number; pass(milliseconds: number): void } {
  let now = time
  return {
    now: () => now,
    pass(milliseconds) {
      now += milliseconds
    },
  }
}

interface Source {
  service: HeaderService
  address: SourceAddress<HeaderSourceKind>
}

async function sourceOf(chain: HeaderChain, kind: Kind = 'junglebus'): Promise<Source> {
  const { url, service } = await startHeaderService(chain)
  return { service, address: { kind, url } }
}

interface Opened {
  headers: FollowedHeaders
  store: DerivingStore
  /** Every tip that was reported. */
  tips: ChainTip[]
  records: Record<string, unknown>[]
  verdict(height: number, root?: string): Promise<string>
}

interface Options extends Partial<FollowedHeadersOptions> {
  opened?: DerivingStore
  height?: number
  /** Whether to wait until the chain is known up to its tip. */
  waits?: boolean
}

/** Headers over sources that are asked on request alone, of a chain whose first header is the checkpoint. */
async function openHeaders(chain: HeaderChain, sources: Source[], options: Options = {}): Promise<Opened> {
  const { opened: given, height = FIRST, waits = true, ...others } = options
  const store = given ?? (await openStore())
  const { logger, records } = keptLog()
  const { hash = '' } = chain.branch.block(height)?.header ?? {}
  const headers = new FollowedHeaders({
    store: store.store.headers,
    sources: sources.map(({ address }) => address),
    checkpoint: { height, hash, work: 0n, minimumWork: 0n },
    ...{ network: 'main', timeout: 60_000, rate: 10_000, pollInterval: 0, retryDelay: 50, logger },
    ...others,
  })
  onTestFinished(() => headers.close())
  const tips: ChainTip[] = []
  headers.onTip((tip) => tips.push(tip))
  headers.start()
  if (waits) await until(() => headers.outage === undefined, 'the headers are complete')
  const verdict = (height: number, root = chain.rootAt(height) ?? 'ab'.repeat(32)): Promise<string> =>
    headers.verdict({ height, root })
  return { headers, store, tips, records, verdict }
}

function longer(chain: HeaderChain, depth: number, by = 1): Branch {
  const branch = chain.fork(chain.bestTip.height - depth)
  while (branch.tip.height < chain.bestTip.height + by) branch.mine()
  return branch
}

/** What a service says of itself, as a message. */
function errorOf(headers: FollowedHeaders, index = 0): string {
  return headers.status().sources?.[index]?.lastError?.message ?? ''
}

describe.each(KINDS)('from %s', (kind) => {
  test('the chain is fetched up to its tip, and proofs are checked without a request', async () => {
    const chain = new HeaderChain()
    chain.grow(2300)
    const source = await sourceOf(chain, kind)
    // A stream says that there is a block as it opens: by a clock, another round would ask for it after a second.
    const { now } = clockAt(Date.now())
    const { headers, tips, verdict } = await openHeaders(chain, [source], { now })
    const tip = chain.bestTip
    expect(headers.status()).toMatchObject({
      ...{ height: tip.height, hash: tip.hash, time: tip.time, from: FIRST },
      sources: [{ name: expect.stringMatching(`^${kind} http://127`), state: 'ok', failures: 0 }],
    })
    expect(tips).toEqual([{ height: tip.height, hash: tip.hash }])
    const asked = source.service.asked.length
    for (const height of [FIRST, FIRST + 1, FIRST + 99, FIRST + 100, FIRST + 1234, tip.height]) {
      expect(await verdict(height)).toBe('yes')
      expect(await headers.isValidRootForHeight(chain.rootAt(height) ?? '', height)).toBe(true)
      expect(await verdict(height, chain.rootAt(FIRST + 7))).toBe('no')
      expect(await headers.isValidRootForHeight('ab'.repeat(32), height)).toBe(false)
    }
    expect(await verdict(tip.height + 1)).toBe('unknown')
    expect(await headers.currentHeight()).toBe(tip.height)
    expect(source.service.asked).toHaveLength(asked)
  })

  test.each([1, 120])('it grows by %s blocks', async (count) => {
    const chain = new HeaderChain()
    chain.grow(150)
    const source = await sourceOf(chain, kind)
    const { headers, tips, verdict } = await openHeaders(chain, [source])
    chain.grow(count)
    await headers.refresh()
    const { height, hash } = chain.bestTip
    const late: ChainTip[] = []
    headers.onTip((tip) => late.push(tip))
    expect([late, tips.at(-1)]).toEqual([[{ height, hash }], { height, hash }])
    expect(await verdict(height)).toBe('yes')
    expect(headers.status().hash).toBe(hash)
  })

  test.each([1, 150])('a branch replaces the last %s blocks, and the lowest is reported', async (depth) => {
    const chain = new HeaderChain()
    chain.grow(200)
    const source = await sourceOf(chain, kind)
    const { headers, tips, verdict } = await openHeaders(chain, [source])
    const forkedAt = chain.bestTip.height - depth + 1
    const old = chain.rootAt(forkedAt)
    chain.reorg(longer(chain, depth))
    await headers.refresh()
    const { height: top, hash } = chain.bestTip
    expect(tips.at(-1)).toEqual({ height: top, hash, forkedAt })
    expect(await verdict(forkedAt, old)).toBe('no')
    for (const height of [forkedAt - 1, forkedAt, chain.bestTip.height])
      expect(await verdict(height)).toBe('yes')
    expect(await headers.currentHeight()).toBe(chain.bestTip.height)
  })

  test('headers below the checkpoint are linked to it, and added', async () => {
    const chain = new HeaderChain(0)
    const height = kind === 'junglebus' ? 10_050 : 2500
    chain.grow(height + 20)
    const source = await sourceOf(chain, kind)
    const { headers, verdict } = await openHeaders(chain, [source], { height })
    await until(() => headers.status().from === 0)
    for (const each of [0, 1, 147, 1999, 2000, height - 1, height]) expect(await verdict(each)).toBe('yes')
    expect(await verdict(3, 'ab'.repeat(32))).toBe('no')
  })

  // Of the other kinds, what their own reader has to refuse: the client is the same.
  test.each<Mood>(kind === 'junglebus' ? ['hangs up', 'talks nonsense', 'is busy'] : ['talks nonsense'])(
    'a service that %s changes nothing, and is asked again when it is back',
    async (mood) => {
      const chain = new HeaderChain()
      chain.grow(50)
      const source = await sourceOf(chain, kind)
      source.service.mood = mood
      const clock = clockAt(Date.now())
      const { headers, verdict } = await openHeaders(chain, [source], { waits: false, now: clock.now })
      await until(() => errorOf(headers) !== '')
      expect(headers.outage).toContain('block headers are being fetched')
      expect(await verdict(FIRST + 1)).toBe('unknown')
      await expect(headers.isValidRootForHeight('ab'.repeat(32), FIRST + 1)).rejects.toMatchObject({
        code: 'NOT_READY',
        headers: { 'Retry-After': '5' },
      })
      source.service.mood = 'answers'
      // A rest is over.
      clock.pass(60_000)
      await until(() => headers.outage === undefined)
      expect(await verdict(FIRST + 50)).toBe('yes')

      chain.grow(1)
      source.service.mood = mood
      await headers.refresh()
      expect(await verdict(FIRST + 51)).toBe('unknown')
      expect(await verdict(FIRST + 50)).toBe('yes')
      expect(headers.status().sources).toMatchObject([
        { state: 'resting', lastError: { message: expect.any(String) } },
      ])
    },
  )
})

describe('a source that lies', () => {
  const changed = (header: Header, at: number, change: number): Header => {
    const bytes = Buffer.from(header.bytes)
    bytes.writeUInt32LE((bytes.readUInt32LE(at) + change) >>> 0, at)
    return { ...header, bytes }
  }

  test.each<[string, (header: Header) => Header, RegExp]>([
    ['of a merkle root', (header) => changed(header, 36, 1), /proof of work|does not refer/],
    ['of its links', (header) => changed(header, 4, 1), /chain ends|unlinked|checkpoint|does not refer/],
    ['of the target', (header) => changed(header, 72, 1), /has the target 20800000/],
    ['of the time', (header) => changed(header, 68, 1), /proof of work|does not refer/],
  ])('%s is not believed', async (_, lie, message) => {
    const chain = new HeaderChain()
    chain.grow(120)
    const [liar, honest] = [await sourceOf(chain, 'chaintracks'), await sourceOf(chain, 'junglebus')]
    const { headers, verdict } = await openHeaders(chain, [liar, honest])
    chain.grow(30)
    const at = chain.bestTip.height - 20
    liar.service.tamper = (header) => (header.height === at ? lie(header) : header)
    // Any nonce may meet so easy a target: half of all lies have proof of work, and then break the link after them.
    honest.service.mood = 'fails'
    await headers.refresh()
    expect(errorOf(headers)).toMatch(message)
    expect(await verdict(at - 1)).toBe('yes')
    expect(headers.status().height).toBeLessThanOrEqual(at)
    honest.service.mood = 'answers'
    await headers.refresh()
    expect(headers.status()).toMatchObject({ height: chain.bestTip.height, hash: chain.bestTip.hash })
    expect(await verdict(at)).toBe('yes')
  })

  test('of a chain without the checkpoint is not followed', async () => {
    const chain = new HeaderChain()
    chain.grow(20)
    const foreign = new HeaderChain(FIRST - 1)
    foreign.grow(60)
    const [liar, honest] = [await sourceOf(foreign), await sourceOf(chain)]
    const { headers, tips } = await openHeaders(chain, [liar, honest])
    expect(errorOf(headers)).toContain('checkpoint at 800000')
    expect(tips).toEqual([{ height: FIRST + 20, hash: chain.bestTip.hash }])
    await headers.refresh()
    expect(headers.status().hash).toBe(chain.bestTip.hash)
    expect(errorOf(headers)).toContain('checkpoint')
  })

  test('of a higher tip is found out, and what it has is kept', async () => {
    const chain = new HeaderChain()
    chain.grow(20)
    const source = await sourceOf(chain)
    source.service.boast = 1_000_000
    const { headers, verdict } = await openHeaders(chain, [source], { waits: false })
    await until(() => errorOf(headers) !== '')
    expect(errorOf(headers)).toContain('its tip is at 1800020, and its chain ends at 800020')
    expect(await verdict(FIRST + 20)).toBe('yes')
    expect(headers.outage).toContain('known up to 800020')
    source.service.boast = 0
    await until(() => headers.outage === undefined)
  })

  test.each([
    ['first', 0],
    ['last', 1],
  ])('about less work, asked %s, does not move the chain', async (_, index) => {
    const chain = new HeaderChain()
    chain.grow(40)
    const sources = [await sourceOf(chain), await sourceOf(chain)]
    const { headers, tips } = await openHeaders(chain, sources)
    // It withholds the last blocks, and has a branch of its own that is one block too short.
    const branch = chain.fork(chain.bestTip.height - 10)
    while (branch.tip.height < chain.bestTip.height) branch.mine()
    const shorter = new HeaderChain()
    shorter.grow(1)
    Object.assign(shorter, { active: branch })
    const [liar] = sources.slice(index)
    if (liar === undefined) throw new Error('there is no such source')
    liar.service.chain = shorter
    await headers.refresh()
    expect(headers.status().hash).toBe(chain.bestTip.hash)
    branch.mine()
    await headers.refresh()
    // Now it has more work than the other.
    expect(headers.status().hash).toBe(branch.tip.hash)
    expect(tips.slice(1)).toEqual([{ height: FIRST + 41, hash: branch.tip.hash, forkedAt: FIRST + 31 }])
  })
})

test('a Block Headers Service also lists blocks of other branches, in any order', async () => {
  const chain = new HeaderChain()
  chain.grow(30)
  const source = await sourceOf(chain, 'headersservice')
  const branch = chain.fork(FIRST + 20)
  source.service.stale = [branch.mine().header, branch.mine().header]
  const { headers } = await openHeaders(chain, [source])
  expect(headers.status()).toMatchObject({ height: FIRST + 30, hash: chain.bestTip.hash })
})

test('a stream says when there is a block', async () => {
  const chain = new HeaderChain()
  chain.grow(5)
  const source = await sourceOf(chain, 'chaintracks')
  const { tips } = await openHeaders(chain, [source])
  await until(() => source.service.streams.get('/v2/tip/stream')?.size)
  chain.grow(1)
  source.service.send('/v2/tip/stream', { height: chain.bestTip.height, hash: chain.bestTip.hash })
  await until(() => tips.some(({ height }) => height === chain.bestTip.height))
})

test('a source is asked by polling', async () => {
  const chain = new HeaderChain()
  chain.grow(5)
  const source = await sourceOf(chain)
  const { tips } = await openHeaders(chain, [source], { pollInterval: 20 })
  chain.grow(2)
  await until(() => tips.some(({ height }) => height === chain.bestTip.height))
})

test('a source whose headers are invalid rests longer each time, although it answers; one that is away, a minute', async () => {
  const clock = clockAt(Date.now())
  const chain = new HeaderChain(0)
  chain.grow(5)
  const [liar, away] = [await sourceOf(chain, 'chaintracks'), await sourceOf(chain)]
  const { headers } = await openHeaders(chain, [liar, away], { now: clock.now, height: 0 })
  const foreign = new HeaderChain()
  foreign.grow(60)
  liar.service.chain = foreign
  away.service.mood = 'fails'
  const rests: number[][] = []
  for (let rounds = 0; rounds < 12; rounds++) {
    await headers.refresh()
    rests.push((headers.status().sources ?? []).map(({ restingUntil = 0 }) => restingUntil - clock.now()))
  }
  expect(rests.slice(0, 3)).toEqual([
    [1000, 1000],
    [2000, 2000],
    [4000, 4000],
  ])
  expect(rests.at(-1)).toEqual([600_000, 60_000])
})

test('while no source responds, nothing is refused, and what is known is confirmed', async () => {
  const clock = clockAt(Date.now())
  const chain = new HeaderChain()
  chain.grow(5)
  const source = await sourceOf(chain)
  const { headers, verdict } = await openHeaders(chain, [source], { pollInterval: 30_000, now: clock.now })
  source.service.mood = 'fails'
  expect(await verdict(FIRST + 3, 'ab'.repeat(32))).toBe('no')
  clock.pass(91_000)
  expect(headers.outage).toContain('no source of block headers has responded since')
  expect(await verdict(FIRST + 3)).toBe('yes')
  expect(await verdict(FIRST + 3, 'ab'.repeat(32))).toBe('unknown')
  // Up to the checkpoint no branch can differ.
  expect(await verdict(FIRST, 'ab'.repeat(32))).toBe('no')
  expect(await headers.currentHeight()).toBe(FIRST + 5)
})

test('a height that no chain can have reached by now is refused', async () => {
  const chain = new HeaderChain()
  chain.grow(5)
  const clock = clockAt(chain.bestTip.time * 1000)
  const { headers } = await openHeaders(chain, [await sourceOf(chain)], { now: clock.now })
  const ask = (height: number) => headers.isValidRootForHeight('ab'.repeat(32), height)
  await expect(ask(FIRST + 11)).rejects.toMatchObject({ code: 'NOT_READY' })
  expect(await ask(FIRST + 12)).toBe(false)
  clock.pass(3_600_000)
  await expect(ask(FIRST + 12)).rejects.toMatchObject({ code: 'NOT_READY' })
  expect(await ask(4_294_967_295)).toBe(false)
})

test('a chain without the least work is not believed above its checkpoint', async () => {
  const chain = new HeaderChain()
  chain.grow(9)
  const source = await sourceOf(chain)
  const { hash = '' } = chain.branch.block(FIRST)?.header ?? {}
  const checkpoint = { height: FIRST, hash, work: 100n, minimumWork: 120n }
  const { headers, verdict } = await openHeaders(chain, [source], { checkpoint, waits: false })
  await until(() => headers.status().height === FIRST + 9)
  await headers.refresh()
  expect(headers.outage).toContain('block headers are being fetched')
  expect(await verdict(FIRST)).toBe('yes')
  expect(await verdict(FIRST + 1)).toBe('unknown')
  await expect(headers.isValidRootForHeight('ab'.repeat(32), FIRST + 1)).rejects.toMatchObject({
    code: 'NOT_READY',
  })
  chain.grow(1)
  await until(() => headers.outage === undefined)
  expect(await verdict(FIRST + 1)).toBe('yes')
  expect(await headers.currentHeight()).toBe(FIRST + 10)
})

test('a block from the future is not taken before its time', async () => {
  const chain = new HeaderChain()
  chain.grow(20)
  const clock = clockAt(chain.bestTip.time * 1000 - 10 * 600_000)
  const { headers } = await openHeaders(chain, [await sourceOf(chain)], { now: clock.now, waits: false })
  // The last within two hours of the clock is two blocks above the one before it.
  await until(() => errorOf(headers).includes('ahead of the clock') || headers.outage === undefined)
  expect(headers.status().height).toBe(FIRST + 20)
  chain.grow(3)
  await headers.refresh()
  expect(headers.status().height).toBe(FIRST + 22)
  expect(errorOf(headers)).toContain('800023 is more than two hours ahead')
  clock.pass(600_000)
  await headers.refresh()
  expect(headers.status().height).toBe(FIRST + 23)
})

describe('over the same store again', () => {
  test('nothing is fetched twice, and a reorganisation meanwhile is reported', async () => {
    const chain = new HeaderChain(0)
    chain.grow(1300)
    const source = await sourceOf(chain)
    const first = await openHeaders(chain, [source], { height: 1000 })
    await until(() => first.headers.status().from === 0)
    await first.headers.close()
    chain.reorg(longer(chain, 4))
    source.service.asked.length = 0
    const { tips, verdict } = await openHeaders(chain, [source], { opened: first.store, height: 1000 })
    const { height, hash } = chain.bestTip
    expect(tips).toEqual([{ height, hash, forkedAt: height - 4 }])
    for (const each of [7, 999, 1001, height]) expect(await verdict(each)).toBe('yes')
    const from = source.service.asked.flatMap((url) => /list\/(\d+)/.exec(url)?.[1] ?? [])
    expect(Math.min(...from.map(Number))).toBeGreaterThan(1200)
  })

  test('they are waited for as long as a source brings more of them, and no longer', async () => {
    const chain = new HeaderChain()
    chain.grow(30)
    const source = await sourceOf(chain)
    // Longer than an answer may take: `currentHeight` waits no longer than that.
    let release = (): void => undefined
    source.service.held = new Promise((resolve) => {
      release = resolve
    })
    const { headers } = await openHeaders(chain, [source], { waits: false })
    const fetched = headers.fetched()
    expect(headers.outage).toContain('there are none yet')
    // It fails after two pages, which are kept: the next round goes on.
    source.service.page = 10
    source.service.onAnswer = () => {
      source.service.mood = headers.status().height === FIRST + 10 ? 'fails' : 'answers'
    }
    release()
    await fetched
    expect(await headers.currentHeight()).toBe(FIRST + 30)
    const dead = await sourceOf(chain)
    dead.service.mood = 'fails'
    const { headers: none } = await openHeaders(chain, [dead], { waits: false })
    await none.fetched()
    await expect(none.currentHeight()).rejects.toThrow('there are none yet')
  })

  test('the headers of another chain are replaced', async () => {
    const [one, other] = [new HeaderChain(), new HeaderChain(FIRST - 10)]
    one.grow(30)
    other.grow(30)
    const first = await openHeaders(one, [await sourceOf(one)])
    await first.headers.close()
    const { headers } = await openHeaders(other, [await sourceOf(other)], {
      opened: first.store,
      height: FIRST,
    })
    expect(headers.status()).toMatchObject({ height: other.bestTip.height, hash: other.bestTip.hash })
  })

  test('two processes keep one chain', async () => {
    const chain = new HeaderChain(0)
    chain.grow(300)
    const source = await sourceOf(chain)
    const one = await openHeaders(chain, [source], { height: 200 })
    const other = await openHeaders(chain, [source], { opened: one.store, height: 200 })
    const agree = async (): Promise<void> => {
      await Promise.all([one.headers.refresh(), other.headers.refresh()])
      for (const { headers, verdict } of [one, other]) {
        expect(headers.status()).toMatchObject({ hash: chain.bestTip.hash, height: chain.bestTip.height })
        expect(await verdict(chain.bestTip.height)).toBe('yes')
      }
    }
    chain.grow(3)
    await agree()
    chain.reorg(longer(chain, 5, 2))
    await agree()
    chain.grow(130)
    await agree()
    await until(() => one.headers.status().from === 0 || other.headers.status().from === 0)
    expect(await one.store.store.headers.range()).toEqual({ from: 0, to: chain.bestTip.height })
  })
})

test('another thread gets the same answers and errors', async () => {
  const chain = new HeaderChain()
  chain.grow(150)
  const { headers } = await openHeaders(chain, [await sourceOf(chain)])
  const shared = sharedHeaders(shareHeaders(headers))
  const { height, root = '' } = { height: FIRST + 149, root: chain.rootAt(FIRST + 149) }
  const ask = () =>
    Promise.allSettled([
      shared.currentHeight(),
      shared.isValidRootForHeight(root, height),
      shared.verdict({ height, root }),
      shared.isValidRootForHeight(root, FIRST + 152),
    ])
  const unknown = { reason: { code: 'NOT_READY', message: expect.stringContaining('not known yet') } }
  expect(await ask()).toMatchObject([{ value: FIRST + 150 }, { value: true }, { value: 'yes' }, unknown])
  chain.reorg(longer(chain, 3))
  await headers.refresh()
  expect(await ask()).toMatchObject([{ value: FIRST + 151 }, { value: false }, { value: 'no' }, unknown])
  await shared.close()
})

test('a proof of a branch that has won since the last round is checked after another round, once for all', async () => {
  const chain = new HeaderChain()
  chain.grow(20)
  const source = await sourceOf(chain)
  const clock = clockAt(Date.now())
  const { headers } = await openHeaders(chain, [source], { now: clock.now })
  chain.reorg(longer(chain, 3))
  const { height, root } = chain.bestTip
  const at = height - 2
  const rootAt = chain.rootAt(at) ?? ''
  const { length } = source.service.asked
  expect(await headers.isValidRootForHeight(rootAt, at)).toBe(false)
  expect(source.service.asked).toHaveLength(length)
  clock.pass(6000)
  const asked = Array.from({ length: 20 }, () => headers.isValidRootForHeight(rootAt, at))
  expect(new Set(await Promise.all(asked))).toEqual(new Set([true]))
  expect(await headers.isValidRootForHeight(root, height)).toBe(true)
  expect(source.service.asked.slice(length).filter((question) => question.endsWith('/tip'))).toHaveLength(1)
})

test('a proof of a block that is newer than the last round is checked after another round, once for all', async () => {
  const chain = new HeaderChain()
  chain.grow(20)
  const source = await sourceOf(chain)
  const clock = clockAt(chain.bestTip.time * 1000)
  const { headers } = await openHeaders(chain, [source], { now: clock.now })
  chain.grow(2)
  const { height, root } = chain.bestTip
  const { length } = source.service.asked
  const asked = (): number =>
    source.service.asked.slice(length).filter((question) => question.endsWith('/tip')).length
  const unknown = { code: 'NOT_READY', message: expect.stringContaining('not known yet') }
  await expect(headers.isValidRootForHeight(root, height)).rejects.toMatchObject(unknown)
  expect(asked()).toBe(0)
  clock.pass(6000)
  const answers = Array.from({ length: 20 }, () => headers.isValidRootForHeight(root, height))
  expect(new Set(await Promise.all(answers))).toEqual(new Set([true]))
  expect(asked()).toBe(1)
  // One that the sources do not have yet either.
  clock.pass(6000)
  await expect(headers.isValidRootForHeight(root, height + 1)).rejects.toMatchObject(unknown)
  expect(asked()).toBe(2)
  // Nobody is asked about one that cannot exist.
  clock.pass(6000)
  expect(await headers.isValidRootForHeight(root, height + 100)).toBe(false)
  expect(asked()).toBe(2)
})

describe.each(KINDS)('a %s that is hostile', (kind) => {
  /** Which page something happens at: WhatsOnChain has few headers in one file. */
  const FIRST_PAGES = { junglebus: 4, chaintracks: 4, whatsonchain: 1, headersservice: 4 }
  const html = '<!doctype html><title>Not what was asked for</title>'

  test('and sends a page of HTML is left alone while another one is followed', async () => {
    const chain = new HeaderChain()
    chain.grow(20)
    const [hostile, honest] = [await sourceOf(chain, kind), await sourceOf(chain)]
    const isPage = (url: string): boolean => /list|\/v2\/headers|resources|\/\d+\/header$|byHeight/.test(url)
    const questions: string[] = []
    hostile.service.onResponse = (url, response) => {
      questions.push(url)
      if (isPage(url)) response.writeHead(200, { 'Content-Type': 'text/html' }).end(html)
      return isPage(url)
    }
    const { headers } = await openHeaders(chain, [hostile, honest], {
      timeout: 30_000,
      now: clockAt(Date.now()).now,
    })
    expect(headers.status()).toMatchObject({
      hash: chain.bestTip.hash,
      sources: [{ state: 'resting' }, { state: 'ok' }],
    })
    expect(errorOf(headers)).toContain('answered')
    expect(questions.filter(isPage)).toHaveLength(1)
  })

  test.each<[string, (from: number) => number]>([
    ['repeats a page', (from) => from - 60],
    ['skips a page', (from) => from + 60],
    ['answers from the height above', (from) => from + 1],
    ['answers from the height below', (from) => from - 1],
  ])('and %s, is not believed, and what it had before is kept', async (_, shift) => {
    const chain = new HeaderChain()
    chain.grow(5)
    const source = await sourceOf(chain, kind)
    const { headers, verdict, tips } = await openHeaders(chain, [source])
    chain.grow(300)
    source.service.page = 60
    let nth = 0
    source.service.shift = (from) => (++nth < FIRST_PAGES[kind] ? from : shift(from))
    await headers.refresh()
    const { height = 0 } = headers.status()
    expect(height).toBeLessThan(chain.bestTip.height)
    expect(errorOf(headers)).not.toBe('')
    expect(await verdict(height)).toBe('yes')
    source.service.shift = undefined
    await headers.refresh()
    expect(headers.status()).toMatchObject({ hash: chain.bestTip.hash, height: FIRST + 305 })
    expect(tips.filter(({ forkedAt }) => forkedAt !== undefined)).toEqual([])
  })

  test('a reorganisation while it is fetched is followed', async () => {
    const chain = new HeaderChain()
    chain.grow(400)
    const source = await sourceOf(chain, kind)
    source.service.page = 60
    let pages = 0
    source.service.onQuestion = (question) => {
      if (/list|\/v2\/headers|resources|byHeight/.test(question) && ++pages === FIRST_PAGES[kind])
        chain.reorg(longer(chain, 350))
    }
    const { headers, verdict } = await openHeaders(chain, [source])
    await until(() => headers.status().hash === chain.bestTip.hash)
    for (const height of [FIRST + 49, FIRST + 51, FIRST + 120, FIRST + 401])
      expect(await verdict(height)).toBe('yes')
  })
})

describe('a source with valid headers that gives them so slowly that it would take days', () => {
  /** A source that gives two headers at a time, each after a minute of the clock. */
  async function dripOf(chain: HeaderChain, clock: { pass(milliseconds: number): void }): Promise<Source> {
    const drip = await sourceOf(chain)
    drip.service.page = 2
    drip.service.onQuestion = (question) => question.includes('/list/') && clock.pass(60_000)
    return drip
  }

  test('does not keep another one waiting', async () => {
    const clock = clockAt(Date.now())
    const chain = new HeaderChain()
    chain.grow(300)
    const drip = await dripOf(chain, clock)
    const { headers } = await openHeaders(chain, [drip, await sourceOf(chain)], { now: clock.now })
    expect(headers.status().hash).toBe(chain.bestTip.hash)
    expect(drip.service.asked.length).toBeLessThan(10)
  })

  test('rests if these are of a branch with less work that leaves the chain far below', async () => {
    const clock = clockAt(Date.now())
    const [chain, other] = [new HeaderChain(), new HeaderChain()]
    chain.grow(1300)
    other.grow(1200)
    other.reorg(longer(other, 1150))
    const drip = await dripOf(other, clock)
    const { headers } = await openHeaders(chain, [await sourceOf(chain), drip], { now: clock.now })
    expect(headers.status()).toMatchObject({ hash: chain.bestTip.hash, sources: [{}, { state: 'resting' }] })
    expect(errorOf(headers, 1)).toContain('took too long')
    expect(drip.service.asked.filter((url) => url.includes('/list/')).length).toBeLessThan(4)
  })

  test('does not keep new blocks waiting for those below the checkpoint', async () => {
    const clock = clockAt(Date.now())
    const chain = new HeaderChain(0)
    chain.grow(1000)
    const [drip, honest] = [await dripOf(chain, clock), await sourceOf(chain)]
    const { headers } = await openHeaders(chain, [drip, honest], { now: clock.now, height: 990 })
    await until(() => headers.status().from === 0)
    expect(errorOf(headers, 0)).toContain('took too long')
    expect(drip.service.asked.length).toBeLessThan(20)
  })
})

test('a stream that has something to say all the time does not have the sources asked all the time', async () => {
  const clock = clockAt(Date.now())
  const chain = new HeaderChain()
  chain.grow(5)
  const [flood, other] = [await sourceOf(chain, 'chaintracks'), await sourceOf(chain)]
  const { headers } = await openHeaders(chain, [flood, other], { now: clock.now })
  await until(() => flood.service.streams.get('/v2/tip/stream')?.size)
  await loopTurns()
  const { length } = other.service.asked
  for (let height = 0; height < 10; height++) {
    flood.service.send('/v2/tip/stream', { height, hash: 'ab'.repeat(32) })
    await loopTurns()
  }
  expect(other.service.asked).toHaveLength(length)
  clock.pass(1000)
  chain.grow(1)
  flood.service.send('/v2/tip/stream', chain.bestTip)
  await until(() => headers.status().hash === chain.bestTip.hash)
})

test('a round that the store breaks off is repeated soon, and the log says so once', async () => {
  const chain = new HeaderChain()
  chain.grow(5)
  const source = await sourceOf(chain, 'chaintracks')
  const opened = await openStore()
  const { headers: stored } = opened.store
  let failures = 0
  let isAway = false
  const range = async () => {
    if (isAway) throw new Error(`the database is away, ${++failures}`)
    return await stored.range()
  }
  const { headers, records } = await openHeaders(chain, [source], { opened, store: { ...stored, range } })
  await until(() => source.service.streams.get('/v2/tip/stream')?.size)
  isAway = true
  chain.grow(1)
  source.service.send('/v2/tip/stream', chain.bestTip)
  await until(() => failures > 3)
  expect(headers.status().lastError?.message).toContain('the database is away')
  expect(records.filter(({ msg }) => msg === 'could not update the block headers; will retry')).toHaveLength(
    1,
  )
  isAway = false
  await until(() => headers.status().hash === chain.bestTip.hash)
})
