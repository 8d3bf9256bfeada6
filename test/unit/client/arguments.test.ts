import { LookupNameSource } from '../../../src/client/lookup-source.js'
import { HttpNameSource } from '../../../src/client/name-source.js'
import { OwnHeaders } from '../../../src/client/own-headers.js'
import { resolveName } from '../../../src/client/resolve.js'
import { createVerifiedFetch, verifiedFetch } from '../../../src/client/verified-fetch.js'
import { verifyNameHistory, verifyProvenance } from '../../../src/client/verify-history.js'
import { verifyNameProof, verifyNode } from '../../../src/client/verify-name.js'
import { verifyNextOutput, verifyOrdinal, verifyOutput } from '../../../src/client/verify-output.js'
import { nameCoin, nameSteps } from '../../../src/identity/name-coin.js'
import { HttpMineIndex } from '../../../src/mining/mine-index.js'
import { mineName, solveNext } from '../../../src/mining/mine-name.js'
import { namedWorld, outpointBeef, proofOf, recordsOf } from '../../support/client/name-proofs.js'

// A caller's mistake is a TypeError that names the argument, and nobody is asked anything; and a caller who cancels is heeded at once.

const { deployment, headers: chainTracker, line, origin, tip, way } = namedWorld()
const proof = proofOf(line)
const provenance = outpointBeef(tip, recordsOf(way))
const beef = provenance.subarray(40)
const pointer = { kind: 'outpoint', outpoint: tip } as const
const trust = { chainTracker, deployment }
const url = 'http://names.example'

/** Requests that never end. */
class Silence {
  private begin: () => void = () => {}
  asked = 0
  readonly begun = new Promise<void>((resolve) => {
    this.begin = resolve
  })
  readonly fetch = (): Promise<never> => this.wait()
  readonly chainTracker = { isValidRootForHeight: () => this.wait(), currentHeight: () => this.wait() }

  private wait(): Promise<never> {
    this.asked++
    this.begin()
    return new Promise<never>(() => {})
  }
}

const isMintOf = async (): Promise<boolean> => true

const noLock = async (): Promise<Uint8Array> => new Uint8Array()

const mineIndex = (given: unknown, { fetch }: Silence) =>
  given === url ? Object.assign(new HttpMineIndex({ url }), { liveNode: fetch, showNode: fetch }) : given

// biome-ignore lint/suspicious/noExplicitAny: callers without types write anything
type Given = any

/** Calls that are right, by their names: each with arguments that may be left out or replaced. */
type Call = [call: (given: Given, silence: Silence) => unknown, right: Record<string, unknown>]
const CALLS: Record<string, Call> = {
  resolveName: [
    ({ sources, ...given }, { fetch }) =>
      resolveName({ ...given, sources: sources === url ? [new HttpNameSource({ url, fetch })] : sources }),
    { ...trust, name: 'abc', sources: url },
  ],
  verifiedFetch: [
    (given, { fetch }) => verifiedFetch('abc', { fetch, ...given }),
    { ...trust, gateways: [url], profile: 'local' },
  ],
  verifyNameProof: [verifyNameProof, { ...trust, proof, name: 'abc' }],
  verifyNode: [verifyNode, { ...trust, beef, outpoint: tip }],
  verifyNameHistory: [verifyNameHistory, { ...trust, beef, tip: { vout: 0 }, name: 'abc' }],
  verifyProvenance: [verifyProvenance, { chainTracker, provenance, origin }],
  verifyOutput: [verifyOutput, { chainTracker, proof: provenance, pointer }],
  verifyNextOutput: [verifyNextOutput, { chainTracker, proof: provenance, from: origin }],
  verifyOrdinal: [verifyOrdinal, { chainTracker, proof: provenance, asked: tip, sequence: -1, isMintOf }],
  mineName: [
    ({ index, ...given }, silence) => mineName({ ...given, index: mineIndex(index, silence) }),
    { ...trust, name: 'abcd', index: url, ownerLock: noLock, pay: isMintOf },
  ],
  solveNext: [
    ({ index, ...given }, silence) => solveNext({ ...given, index: mineIndex(index, silence) }),
    { ...trust, name: 'abcd', index: url, ownerLock: noLock },
  ],
  nameCoin: [nameCoin, { name: 'abc', provenance }],
  nameSteps: [nameSteps, { name: 'abc', provenance }],
  HttpNameSource: [(given) => new HttpNameSource(given), { url }],
  HttpMineIndex: [(given) => new HttpMineIndex(given), { url }],
  OwnHeaders: [(given) => new OwnHeaders(given), { sources: [url] }],
}

const NO_OUTPOINTS = [{ txid: tip.txid.slice(1), vout: 0 }, { txid: tip.txid }]
const MISTAKES = Object.entries(CALLS).flatMap(([name, [, right]]) =>
  Object.keys(right)
    .filter((argument) => !['profile', 'sequence', 'isMintOf'].includes(argument))
    // Without a name, the proof is of another one.
    .filter((argument) => argument !== 'name' || ['resolveName', 'mineName', 'solveNext'].includes(name))
    .flatMap((argument) =>
      // Of a tip, only `vout` is given.
      [undefined, null, 7, ...(argument === 'tip' ? [] : NO_OUTPOINTS)].map(
        (given) => [name, argument, given] as const,
      ),
    ),
)

test.each(MISTAKES)('%s with a %s that is %s is a mistake of the caller', async (name, argument, given) => {
  const [call, right] = CALLS[name] as Call
  // The tree of a profile is one that need not be given.
  const isLeftOut = name === 'verifiedFetch' && argument === 'deployment' && given === undefined
  const silence = new Silence()
  const calling = (async () => await call({ ...right, [argument]: given }, silence))()
  await expect(calling).rejects.toThrow(TypeError)
  await expect(calling).rejects.toThrow(new RegExp(`^${argument}(\\[0\\])? must be `))
  expect([silence.asked, isLeftOut]).toEqual([0, isLeftOut])
})

test.each(['ftp://names.example', `${url}/?x`, `${url}#x`, 'http://user:word@names.example'])(
  '%s is no address of a server',
  (given) => {
    expect(() => new HttpNameSource({ url: given })).toThrow(/^url must be the URL of a server/)
  },
)

describe('a call that is cancelled ends at once, with the reason', () => {
  const cancelled = async (
    call: (signal: AbortSignal, silence: Silence) => Promise<unknown>,
  ): Promise<void> => {
    const [stop, silence, reason] = [new AbortController(), new Silence(), new Error('enough')]
    const calling = call(stop.signal, silence)
    await silence.begun
    stop.abort(reason)
    await expect(calling).rejects.toBe(reason)
    const before = silence.asked
    // One that is cancelled before it begins asks nobody.
    await expect(call(stop.signal, silence)).rejects.toBe(reason)
    expect(silence.asked).toBe(before)
  }

  test.each([
    ...['verifyNameProof', 'verifyProvenance', 'verifyOutput'].map((name) => [name, 'headers']),
    ['resolveName', 'an index'],
  ])('%s, which waits for %s', async (name, awaited) => {
    const [call, right] = CALLS[name as string] as Call
    await cancelled(async (signal, silence) => {
      const { chainTracker } = silence
      await call({ ...right, signal, ...(awaited === 'headers' && { chainTracker }) }, silence)
    })
  })

  test('resolveName, which waits for headers, for an index of its own, or for one that is found', async () => {
    const resolving = { ...trust, name: 'abc' }
    const evidence = { form: 'proofs', origin, tip, proof, provenance } as const
    const shows = async () => [{ index: 'a', kind: 'claimed', evidence } as const]
    await cancelled((signal, silence) =>
      resolveName({ ...resolving, sources: [{ ask: shows }], chainTracker: silence.chainTracker, signal }),
    )
    await cancelled((signal, { fetch }) => resolveName({ ...resolving, sources: [{ ask: fetch }], signal }))
    await cancelled((signal, { fetch }) =>
      resolveName({ ...resolving, sources: [{ ask: fetch, find: fetch }], signal }),
    )
  })

  test('sources by themselves', async () => {
    await cancelled((signal, { fetch }) => new HttpNameSource({ url, fetch }).ask('abc', { signal }))
    await cancelled((signal, { fetch }) => new HttpNameSource({ url, fetch, signal }).ask('abc'))
    const resolver = { hostOverrides: { ls_names: [url] }, networkPreset: 'local' as const }
    await cancelled((signal, { fetch }) => new LookupNameSource({ fetch, resolver }).ask('abc', { signal }))
    await cancelled((signal, { fetch }) => new LookupNameSource({ fetch, resolver, signal }).ask('abc'))
  })

  test('a verified fetch, of a name and of an output', async () => {
    for (const resource of ['abc', `${tip.txid}_0`, `${tip.txid}_0:-1`])
      await cancelled((signal, { fetch }) =>
        createVerifiedFetch({ ...trust, gateways: [url], profile: 'local', fetch })(resource, { signal }),
      )
  })
})
