import { MAP_MARKER } from '../../../../backend/src/protocol/bitcom.js'
import { concatBytes, joinBytes, utf8 } from '../../../../backend/src/protocol/bytes.js'
import { encodePush, OP } from '../../../../backend/src/protocol/script-walk.js'
import {
  beefOf,
  bitcomTail,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { type Attack, type Fixture, postingJson, submitting } from '../attack.js'

const MiB = 1024 * 1024
const METADATA = '/svc/gateway/metadata'

/** JSON of many small values: in memory it takes many times its length. */
function costlyJson(bytes: number): string {
  return `[${'{},'.repeat(Math.floor(bytes / 3) - 2)}{}]`
}

/** An ordinal whose steps say these MAP tails, the first of them beside its content. */
async function ordinalThatSays(
  { chain, admit }: Fixture,
  tails: readonly Uint8Array[],
): Promise<FakeTransaction[]> {
  const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] })
  let before = coin
  const steps: FakeTransaction[] = []
  for (const [at, tail] of tails.entries()) {
    const lock = concatBytes(p2pkh(at), tail)
    const lockingScript =
      at === 0 ? inscriptionScript({ contentType: 'text/plain', body: utf8('small'), suffix: tail }) : lock
    const step = chain.spend({
      inputs: [{ transaction: before, vout: 0 }],
      outputs: [{ satoshis: 1, lockingScript }],
    })
    await admit(step, at === 0 ? [coin] : [])
    steps.push(step)
    before = step
  }
  return steps
}

/** A MAP SET of many keys, as short as so many can be. */
function tinyKeys(count: number): Uint8Array {
  const empty = Uint8Array.of(0)
  const pairs = Array.from({ length: count }, (_, at) => [encodePush(utf8(at.toString(36))), empty]).flat()
  const head = [MAP_MARKER, 'SET'].map((word) => encodePush(utf8(word)))
  return joinBytes([Uint8Array.of(OP.RETURN), ...head, ...pairs])
}

/** What transactions say in MAP, and what answers make of it. */
export function metadataAttacks({
  jsonBytes = 60 * MiB,
  addedBytes = 30 * MiB,
  keys = 100_000,
  listed = 100,
}: Partial<Record<'jsonBytes' | 'addedBytes' | 'keys' | 'listed', number>> = {}): Attack[] {
  const shownBytes = `${Math.round(jsonBytes / MiB)} MiB`
  const saysJson = (key: string, bytes: number): Uint8Array => mapTail({ [key]: costlyJson(bytes) })
  return [
    {
      name: 'json-head',
      title: `HEAD of metadata with ${shownBytes} of JSON in subTypeData`,
      async prepare(fixture) {
        const [ordinal] = await ordinalThatSays(fixture, [saysJson('subTypeData', jsonBytes)])
        return () => ({ method: 'HEAD', path: `${METADATA}/${ordinal?.outpoint(0)}` })
      },
      allowance: { requests: 100, connections: 10 },
      statuses: [200, 429, 503],
    },
    {
      name: 'json-tip',
      title: `content at the tip with ${shownBytes} of JSON in royalties`,
      async prepare(fixture) {
        const [ordinal] = await ordinalThatSays(fixture, [saysJson('royalties', jsonBytes)])
        return () => ({ path: `/content/${ordinal?.outpoint(0)}:-1` })
      },
      allowance: { requests: 1000, connections: 10 },
      statuses: [200, 429, 503],
    },
    {
      name: 'json-added',
      title: `HEAD of metadata after four steps that ADD ${Math.round(addedBytes / MiB)} MiB of JSON each`,
      async prepare(fixture) {
        const adds = ['1', '2', '3', '4'].map((more) =>
          bitcomTail([
            MAP_MARKER,
            'ADD',
            'subTypeData',
            `${more}`,
            costlyJson(addedBytes).replace('{', `${more},{`),
          ]),
        )
        const [origin] = await ordinalThatSays(fixture, adds)
        return () => ({ method: 'HEAD', path: `${METADATA}/${origin?.outpoint(0)}:-1` })
      },
      allowance: { requests: 100, connections: 10 },
      statuses: [200, 429, 503],
    },
    {
      name: 'json-name',
      title: `the record of a name with ${shownBytes} of JSON`,
      async prepare(fixture) {
        const { chain, admit } = fixture
        const mint = chain.mint('y')
        await admit(chain.genesis)
        await admit(mint)
        const lockingScript = concatBytes(p2pkh(1), saysJson('subTypeData', jsonBytes))
        const inputs = [{ transaction: mint, vout: 2 }]
        await admit(chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] }), [mint])
        return () => ({ path: '/svc/names/y' })
      },
      allowance: { requests: 100, connections: 10 },
      statuses: [200, 429, 503],
    },
    {
      name: 'json-list',
      title: `metadata of ${listed} pointers to ${shownBytes} of JSON`,
      async prepare(fixture) {
        const [ordinal] = await ordinalThatSays(fixture, [saysJson('subTypeData', jsonBytes)])
        const forms = [ordinal?.outpoint(0), `${ordinal?.outpoint(0)}:0`, `${ordinal?.txid}.0`]
        const pointers = Array.from({ length: listed }, (_, at) => forms[at % forms.length])
        return () => postingJson(METADATA, pointers)
      },
      allowance: { requests: 10, connections: 10 },
      statuses: [200, 413, 429, 503],
    },
    {
      name: 'tiny-keys',
      title: `submissions of MAP with ${keys} tiny keys`,
      prepare:
        ({ chain }) =>
        () => {
          const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] })
          const lockingScript = inscriptionScript({ body: utf8('x'), suffix: tinyKeys(keys) })
          const inputs = [{ transaction: coin, vout: 0 }]
          const subject = chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] })
          return submitting(beefOf(subject, { with: [coin] }))
        },
      allowance: { requests: 100, connections: 20 },
      statuses: [200, 413, 429, 503],
    },
    {
      name: 'tiny-keys-read',
      title: `metadata of a tip with ${keys} tiny keys at each of 10 steps`,
      async prepare(fixture) {
        const [origin] = await ordinalThatSays(
          fixture,
          Array.from({ length: 10 }, () => tinyKeys(keys)),
        )
        return () => ({ path: `${METADATA}/${origin?.outpoint(0)}:-1` })
      },
      allowance: { requests: 1000, connections: 20 },
      statuses: [200, 429, 503],
    },
    {
      name: 'metadata-lists',
      title: `metadata of ${listed} tips`,
      async prepare(fixture) {
        const pointers: string[] = []
        for (let at = 0; at < listed; at++) {
          const said = mapTail({ name: String(at), about: 'x'.repeat(2000) })
          const [origin] = await ordinalThatSays(fixture, [said, said, said])
          pointers.push(`${origin?.outpoint(0)}:-1`)
        }
        return () => postingJson(METADATA, pointers)
      },
      allowance: { requests: 1000, connections: 100 },
      statuses: [200, 429, 503],
    },
  ]
}
