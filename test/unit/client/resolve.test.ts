import { HeadersError, SourceError } from '../../../src/client/errors.js'
import type { Evidence, IndexAnswer, NameSource } from '../../../src/client/name-source.js'
import { resolveName } from '../../../src/client/resolve.js'
import {
  at,
  FakeHeaders,
  namedWorld,
  outpointBeef,
  proofOf,
  recordsOf,
} from '../../support/client/name-proofs.js'
import { FakeChain, type FakeTransaction, OPEN_LOCK, p2pkh } from '../../support/protocol/fake-chain.js'

// One index or several, each with an answer of its own; what is shown is real, or it would be refused.

const world = namedWorld()
const { deployment, headers, line, origin, tip, transfers, purse, mints, way } = world
const [first, second] = transfers

/** What an index shows that knows the ordinal to be in an output, by these transactions. */
function shown(at: { txid: string; vout: number }, transactions: readonly FakeTransaction[]): Evidence {
  const provenance = outpointBeef(at, recordsOf(transactions))
  return { form: 'proofs', origin, tip: at, proof: proofOf(line), provenance }
}

const current = shown(tip, way)
const stale = shown(at(first, 0), [mints.abc, first])
const unmoved = shown(origin, [mints.abc])
const history: Evidence = {
  form: 'history',
  beef: outpointBeef(tip, recordsOf([...line, first, purse, second])).subarray(40),
  tip,
}

const claimed = (evidence: Evidence, spent?: boolean): IndexAnswer => ({
  kind: 'claimed',
  evidence,
  ...(spent !== undefined && { spent }),
})
const denied: IndexAnswer = { kind: 'not-claimed' }
const failed: IndexAnswer = { kind: 'failed', error: new SourceError('TIMEOUT', 'it took too long') }

const question = { name: 'abc', deployment, chainTracker: headers }

/** Indexes that are called by letters. */
function sources(...answers: IndexAnswer[]): NameSource[] {
  return answers.map((answer, i) => ({ ask: async () => [{ index: 'ABC'[i] ?? '', ...answer }] }))
}

const resolve = async (answers: IndexAnswer[], more: Partial<Parameters<typeof resolveName>[0]> = {}) =>
  await resolveName({ ...question, sources: sources(...answers), ...more })

const verdicts = ({ reports }: { reports: { verdict: string }[] }): string[] =>
  reports.map(({ verdict }) => verdict)

const refusal = async (answers: IndexAnswer[], more: Parameters<typeof resolve>[1] = {}) => {
  const error: unknown = await resolve(answers, more).catch((reason: unknown) => reason)
  expect(error).toMatchObject({ name: 'ResolutionError', message: expect.stringMatching(/^[^\n]{10,800}$/) })
  return error as { code: string; message: string; reports: { verdict: string }[] }
}

describe('one index', () => {
  test.each([
    ['two proofs', current],
    ['one history', history],
  ])('is followed where what it shows holds: %s', async (_, evidence) => {
    const before = Date.now()
    const resolved = await resolve([claimed(evidence, false)])
    expect(resolved).toMatchObject({
      name: 'abc',
      origin: { origin, height: mints.abc.height },
      tip: { tip, sequence: 2, lockingScript: p2pkh(3) },
      proven: true,
      spendStatus: 'unspent',
      reports: [{ index: 'A', verdict: 'agrees' }],
    })
    expect(resolved.checkedAt).toBeGreaterThanOrEqual(before)
    expect(resolved.checkedAt).toBeLessThanOrEqual(Date.now())
  })

  test.each<[what: string, code: string, changed: Partial<Evidence>]>([
    [
      'origin is not the one that it proves',
      'OTHER_ORIGIN',
      { origin: at(mints.ab, 2) } as Partial<Evidence>,
    ],
    ['tip is none that it shows', 'OTHER_TIP', { tip: at(purse, 0) }],
  ])('whose %s is refuted', async (_, code, changed) => {
    expect(await refusal([claimed({ ...current, ...changed } as Evidence)])).toMatchObject({
      ...{ code: 'NO_PROOF', reports: [{ verdict: 'refuted', error: { code } }] },
    })
  })

  const moved = { ...current, tip: at(first, 0) } as Evidence
  test.each([
    ['spoke of an earlier tip has not said it of the later one', moved, true, tip, 'unknown'],
    ['says it of its own tip is not taken for current', stale, true, at(first, 0), 'spent'],
    ['does not say it of a stale tip looks like an honest one', stale, false, at(first, 0), 'unspent'],
    ['does not say', current, undefined, tip, 'unknown'],
  ])('whether the tip is spent: one that %s', async (_, evidence, spent, found, spendStatus) => {
    expect(await resolve([claimed(evidence, spent)])).toMatchObject({ tip: { tip: found }, spendStatus })
  })
})

describe('several indexes', () => {
  test('that show the same agree', async () => {
    const resolved = await resolve([claimed(current, false), claimed(history, false)])
    expect(verdicts(resolved)).toEqual(['agrees', 'agrees'])
  })

  test.each([
    ['the stale one first', [claimed(stale, false), claimed(current, false), claimed(unmoved, false)]],
    ['the stale one last', [claimed(current, false), claimed(unmoved, false), claimed(stale, false)]],
  ])('a stale tip is caught by one that shows more: %s', async (_, answers) => {
    const resolved = await resolve(answers)
    expect(resolved).toMatchObject({ tip: { tip }, spendStatus: 'unspent' })
    expect([...verdicts(resolved)].sort()).toEqual(['agrees', 'stale', 'stale'])
  })

  test('a name that one denies and another proves is claimed', async () => {
    const resolved = await resolve([denied, claimed(current, false), failed])
    expect(resolved.tip.tip).toEqual(tip)
    expect(verdicts(resolved)).toEqual(['denies', 'agrees', 'failed'])
  })

  test('one that lies is set aside, and said to', async () => {
    const cut = { ...current, proof: proofOf(line.slice(1)) } as Evidence
    const forged = { ...current, provenance: outpointBeef(tip, recordsOf(way.slice(1))) } as Evidence
    const resolved = await resolve([claimed(cut), claimed(current, false), claimed(forged)])
    expect(resolved.reports).toMatchObject([
      { index: 'A', verdict: 'refuted', error: { code: 'NO_GENESIS' } },
      { index: 'B', verdict: 'agrees' },
      // The mint is known from the proof, and need not be shown again.
      { index: 'C', verdict: 'agrees' },
    ])
  })

  test('one that makes the chain tracker fail does not keep the others from being heard', async () => {
    const far = { ...mints.abc, height: 2_000_000_000 }
    const stray = { ...current, proof: proofOf([...line.slice(0, -1), far]) } as Evidence
    const chainTracker = {
      isValidRootForHeight: async (root: string, height: number): Promise<boolean> => {
        if (height === far.height) throw new Error('there is no such height')
        return await headers.isValidRootForHeight(root, height)
      },
    }
    const resolved = await resolve([claimed(stray), claimed(current, false)], { chainTracker })
    expect(resolved.tip.tip).toEqual(tip)
    expect(verdicts(resolved)).toEqual(['unchecked', 'agrees'])
    await expect(resolve([claimed(stray), denied], { chainTracker })).rejects.toBeInstanceOf(HeadersError)
    // One that says how high the chain is knows nothing of a block far above it: nobody need ask.
    const knowing = { ...chainTracker, currentHeight: async () => 900_000 }
    for (const sources of [
      [claimed(stray), denied],
      [denied, claimed(stray), denied],
    ])
      expect(await refusal(sources, { chainTracker: knowing })).toMatchObject({ code: 'NOT_CLAIMED' })
  })

  test('do not make up for each other: a proof of one and a tip of another', async () => {
    const noTip = { ...current, provenance: new Uint8Array() } as Evidence
    const noProof = { ...current, proof: new Uint8Array() } as Evidence
    expect(await refusal([claimed(noTip), claimed(noProof)])).toMatchObject({ code: 'NO_PROOF' })
  })

  test('that do not agree whether the tip is spent leave it disputed', async () => {
    const answers = [claimed(current, false), claimed(history, true)]
    expect(await resolve(answers)).toMatchObject({ spendStatus: 'disputed' })
    // One that is behind has said nothing of this tip.
    const behind = [claimed(current, false), claimed(stale, true)]
    expect(await resolve(behind)).toMatchObject({ spendStatus: 'unspent' })
  })
})

describe('what cannot all be true', () => {
  const chain = new FakeChain()
  const ownerLock = OPEN_LOCK
  const coins = chain.spend({
    inputs: [],
    outputs: [1, 2].map(() => ({ satoshis: 1000, lockingScript: OPEN_LOCK })),
  })
  const mint = chain.mint('x', { ownerLock, funding: [at(coins, 0)] })
  const conflicting = chain.mint('x', {
    ownerLock: p2pkh(8),
    funding: [at(coins, 1)],
    from: { ...chain.node(''), ...rootOf(chain) },
  })
  const transfer = (from: ReturnType<typeof at>, lockingScript: Uint8Array) =>
    chain.spend({ inputs: [from], outputs: [{ satoshis: 1, lockingScript }] })
  const [toOne, toOther] = [transfer(at(mint, 2), p2pkh(1)), transfer(at(mint, 2), p2pkh(2))]
  const further = transfer(at(toOther, 0), p2pkh(4))
  const all = [chain.genesis, coins, mint, conflicting, toOne, toOther, further]
  const trust = { name: 'x', deployment: chain.deployment, chainTracker: new FakeHeaders(all) }

  /** An index that shows the name at output `vout` of the last transaction, those named being in no block. */
  const showing = (
    transactions: FakeTransaction[],
    options: { vout: number; unproven?: FakeTransaction[] },
  ): IndexAnswer => {
    const last = transactions.at(-1) ?? chain.genesis
    const records = recordsOf([chain.genesis, coins, ...transactions], options.unproven)
    const where = at(last, options.vout)
    return claimed({ form: 'history', beef: outpointBeef(where, records).subarray(40), tip: where }, false)
  }

  test('two ways of one ordinal, both in no block, or both in one, are not chosen between', async () => {
    for (const unproven of [[toOne, toOther], []]) {
      const answers = [
        showing([mint, toOne], { vout: 0, unproven }),
        showing([mint, toOther], { vout: 0, unproven }),
      ]
      const error = await refusal(answers, trust)
      expect([error.code, ...verdicts(error)]).toEqual(['DISAGREEMENT', 'disagrees', 'disagrees'])
      for (const way of [toOne, toOther]) expect(error.message).toContain(way.outpoint(0))
    }
  })

  test('the one that is in a block counts against the one that is in none, however far that goes', async () => {
    const locked = transfer(at(mint, 2), OPEN_LOCK)
    const beyond = transfer(at(locked, 0), p2pkh(5))
    const answers = [
      showing([mint, locked, beyond], { vout: 0, unproven: [locked, beyond] }),
      showing([mint, toOther], { vout: 0 }),
    ]
    const resolved = await resolve(answers, trust)
    expect(resolved).toMatchObject({ proven: true, tip: { tip: at(toOther, 0) } })
    expect(verdicts(resolved)).toEqual(['overruled', 'agrees'])
  })

  test('two mints of one name: the proven one counts, and else neither', async () => {
    const proven = showing([mint], { vout: 2 })
    const open = showing([conflicting], { vout: 2, unproven: [conflicting] })
    expect(await resolve([open, proven], trust)).toMatchObject({ origin: { origin: at(mint, 2) } })
    const bothOpen = [showing([mint], { vout: 2, unproven: [mint] }), open]
    expect(await refusal(bothOpen, trust)).toMatchObject({ code: 'DISAGREEMENT' })
    const unchecked = [proven, showing([conflicting], { vout: 2 })]
    const more = { ...trust, chainTracker: 'scripts only' } as const
    expect(await refusal(unchecked, more)).toMatchObject({ code: 'DISAGREEMENT' })
  })

  test('what one index proves of a step holds for the others that show it', async () => {
    // The first has no proof of a step, and the second has; the third shows another way, in no block.
    const answers = [
      showing([mint, toOther, further], { vout: 0, unproven: [toOther] }),
      showing([mint, toOther], { vout: 0 }),
      showing([mint, toOne], { vout: 0, unproven: [toOne] }),
    ]
    const resolved = await resolve(answers, trust)
    expect(resolved.tip.tip).toEqual(at(further, 0))
    expect(verdicts(resolved)).toEqual(['agrees', 'stale', 'overruled'])
  })
})

describe('a name that is not resolved', () => {
  test('where indexes deny it, or one does and another fails or shows what does not hold, is not claimed', async () => {
    const cut = claimed({ ...current, proof: proofOf(line.slice(1)) } as Evidence)
    for (const sources of [
      [denied, denied],
      [denied, failed],
      [denied, cut],
      [cut, denied],
      [denied, cut, denied],
    ])
      expect(await refusal(sources)).toMatchObject({ code: 'NOT_CLAIMED' })
  })

  test('where none answers', async () => {
    const message = expect.stringContaining('it took too long')
    expect(await refusal([failed])).toMatchObject({ code: 'NO_PROOF', message })
  })

  test.each(['', 'Abc', 'a b', 'a/../b', 'é', 'a'.repeat(256)])('because it is none: %j', async (name) => {
    const asked: string[] = []
    const source: NameSource = {
      ask: async (question) => {
        asked.push(question)
        return []
      },
    }
    expect(await refusal([], { name, sources: [source] })).toMatchObject({ code: 'BAD_NAME' })
    expect(asked).toEqual([])
  })

  test('because the chain tracker does not answer, which no index is blamed for', async () => {
    const chainTracker = { isValidRootForHeight: async () => await Promise.reject(new Error('away')) }
    await expect(resolve([claimed(current)], { chainTracker })).rejects.toBeInstanceOf(HeadersError)
  })
})

test('proofs that are demanded have to be there', async () => {
  const open = { ...current, proof: proofOf(line, { unproven: [mints.abc] }) } as Evidence
  expect(await refusal([claimed(open)], { requireProofs: true })).toMatchObject({ code: 'NO_PROOF' })
  expect(await resolve([claimed(current)], { requireProofs: true })).toMatchObject({ proven: true })
})

/** The root as deployed. */
function rootOf({ genesis, deployment }: FakeChain) {
  const lockingScript = genesis.transaction.outputs[0]?.lockingScript ?? new Uint8Array()
  return { satoshis: 1, lockingScript, outpoint: deployment.genesis }
}

describe('sources', () => {
  test.each([
    ['a path', '/names'],
    ['another scheme', 'ftp://names.example'],
    ['a URL object of another scheme', new URL('data:,x')],
    ['nothing', undefined],
    ['an object that cannot be asked', {}],
  ])('that are %s are the mistake of the caller', async (_, source) => {
    const wrong = [...sources(denied), source] as unknown as NameSource[]
    const resolving = resolveName({ ...question, sources: wrong })
    await expect(resolving).rejects.toThrow(TypeError)
    await expect(resolving).rejects.toThrow(/^sources\[1\] must be the URL of a server/)
  })

  test('that are URLs are asked over HTTP', async () => {
    const asked: string[] = []
    const fetching = globalThis.fetch
    globalThis.fetch = async (input) => {
      asked.push(String(input))
      return Response.json({ error: 'there is no such name', code: 'NOT_FOUND' }, { status: 404 })
    }
    try {
      const error = await refusal([], { sources: ['https://one.example/', new URL('https://two.example')] })
      expect(error).toMatchObject({ code: 'NOT_CLAIMED' })
    } finally {
      globalThis.fetch = fetching
    }
    expect(asked).toEqual(['https://one.example/svc/names/abc', 'https://two.example/svc/names/abc'])
  })
})
