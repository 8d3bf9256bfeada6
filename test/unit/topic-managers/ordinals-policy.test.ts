import fc from 'fast-check'
import { MIMEType } from 'whatwg-mimetype'
import type { TopicRefusal } from '../../../backend/src/graph/admission-rules.js'
import {
  isContentTypePattern,
  type OrdinalsPolicy,
  type PolicyOutput,
} from '../../../backend/src/graph/topic-rules.js'
import { B_MARKER } from '../../../backend/src/protocol/bitcom.js'
import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { essenceOf } from '../../../backend/src/protocol/media-type.js'
import OrdinalsTopicManager from '../../../backend/src/topic-managers/OrdinalsTopicManager.js'
import { servedType } from '../../../src/gateway/http/security-headers.js'
import {
  beefOf,
  bitcomTail,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../../support/protocol/fake-chain.js'

const chain = new FakeChain()

async function judge(
  policy: OrdinalsPolicy,
  subject: FakeTransaction,
  spent: { previousCoins?: number[]; with?: FakeTransaction[] } = {},
) {
  const refusals: TopicRefusal[] = []
  const manager = new OrdinalsTopicManager({ policy, onRefusal: (refusal) => refusals.push(refusal) })
  const { previousCoins = [], with: ancestors = [] } = spent
  const beef = beefOf(subject, { with: ancestors })
  const said = await manager.identifyAdmissibleOutputs(beef, previousCoins, undefined, 'current-tx')
  const { outputsToAdmit, coinsToRetain } = said
  expect(coinsToRetain).toEqual(previousCoins)
  for (const refusal of refusals) {
    expect(refusal).toMatchObject({ topic: 'tm_ordinals', txid: subject.txid })
    expect(refusal.message).toMatch(/^.{10,200}$/)
  }
  return { admitted: outputsToAdmit, codes: refusals.map(({ code }) => code), refusals }
}

const outputsOf = (...scripts: Uint8Array[]): FakeTransaction => chain.spend({ outputs: scripts })
const content = (contentType: string | undefined, length = 4): Uint8Array =>
  inscriptionScript({ ...(contentType !== undefined && { contentType }), body: new Uint8Array(length) })
const b = (contentType: string): Uint8Array => bitcomTail([B_MARKER, 'data', contentType])
const map = concatBytes(p2pkh(1), mapTail({ app: 'x' }))

/** Fetch, "extract a MIME type", of a legal field value. */
function essenceToBrowsers(value: string): string | undefined {
  const parts = value.match(/(?:[^",]|"(?:[^"\\]|\\.)*(?:"|\\?$))+/g) ?? []
  const essences = parts.map((part) => MIMEType.parse(part)?.essence)
  return essences.findLast((essence) => essence !== undefined && essence !== '*/*')
}

describe('the largest content', () => {
  test.each([
    [99, true],
    [100, true],
    [101, false],
    [100_000, false],
  ])('of 100 bytes: %i of them', async (length, taken) => {
    expect(await judge({ maxContentBytes: 100 }, outputsOf(content('a/b', length)))).toMatchObject(
      taken ? { admitted: [0], codes: [] } : { admitted: [], codes: ['CONTENT_TOO_LARGE'] },
    )
  })

  test('may be none at all', async () => {
    const subject = outputsOf(content('a/b', 0), content('a/b', 1), map)
    const { admitted, codes } = await judge({ maxContentBytes: 0 }, subject)
    expect({ admitted, codes }).toEqual({ admitted: [0, 2], codes: ['CONTENT_TOO_LARGE'] })
  })

  test('is reported, with the output', async () => {
    const { refusals } = await judge({ maxContentBytes: 10 }, outputsOf(map, content('a/b', 11)))
    expect(refusals.map(({ message }) => message)).toEqual([
      'output 1 has 11 bytes of content; this host accepts at most 10',
    ])
  })
})

describe('the types of content', () => {
  test.each<[string[], string | undefined, boolean]>([
    [['text/plain'], 'text/plain', true],
    [['text/plain'], 'TEXT/Plain', true],
    [['Text/PLAIN'], 'text/plain', true],
    [['text/plain'], 'text/plain;charset=utf-8', true],
    [['text/plain'], 'text/html', false],
    [['text/plain'], undefined, false],
    [['application/octet-stream'], undefined, true],
    [['application/octet-stream'], 'no type at all', true],
    [['image/*'], 'image/png', true],
    [['image/*'], 'images/png', false],
    [['text/plain', 'image/*'], 'image/gif', true],
    [[], 'text/plain', false],
  ])('%j: %j', async (contentTypes, contentType, taken) => {
    expect(await judge({ contentTypes }, outputsOf(content(contentType)))).toMatchObject(
      taken ? { admitted: [0], codes: [] } : { admitted: [], codes: ['CONTENT_TYPE_NOT_ALLOWED'] },
    )
  })

  // A prefix alone would let in what is not served, or not read by a browser, as what it is taken for.
  test.each(['image/png,text/html', 'image/png\r\nX: y', 'image/\0png', 'image/', 'image/a b'])(
    '%j is no image',
    async (contentType) => {
      const { codes, refusals } = await judge({ contentTypes: ['image/*'] }, outputsOf(content(contentType)))
      expect(codes).toEqual(['CONTENT_TYPE_NOT_ALLOWED'])
      expect(refusals[0]?.message).toContain('application/octet-stream')
    },
  )

  test('of B data count as those of an envelope', async () => {
    const { admitted } = await judge({ contentTypes: ['text/*'] }, outputsOf(b('text/css'), b('image/png')))
    expect(admitted).toEqual([0])
  })

  test('are those that content is served as', () => {
    const words = ['text', 'image', '/', 'html', '*', ';', 'x=y', ',', ' ', '\t', '\n', '\0', 'é', '✓', '"']
    const part = fc.constantFrom(...words)
    const text = fc.oneof(
      fc.array(part).map((parts) => parts.join('')),
      fc.string(),
    )
    fc.assert(
      fc.property(text, (contentType) => {
        expect(essenceOf(contentType)).toBe(essenceToBrowsers(servedType(contentType).value))
      }),
    )
  })
})

describe('a predicate', () => {
  test('is given all that is known of an output', async () => {
    const judged: PolicyOutput[] = []
    const policy = { admit: (output: PolicyOutput) => judged.push(output) > 0 }
    const subject = outputsOf(p2pkh(1), content('Text/Plain; x', 7), map)
    expect((await judge(policy, subject)).admitted).toEqual([1, 2])
    expect(judged.map(({ transaction, ...rest }) => ({ txid: transaction.txid, ...rest }))).toEqual([
      { txid: subject.txid, vout: 1, contentType: 'Text/Plain; x', contentLength: 7 },
      { txid: subject.txid, vout: 2 },
    ])
  })

  test('decides what the other rules leave', async () => {
    const policy = { maxContentBytes: 10, admit: ({ vout }: PolicyOutput) => vout !== 1 }
    const subject = outputsOf(content('a/b', 11), content('a/b'), content('a/b'))
    const { admitted, codes } = await judge(policy, subject)
    expect({ admitted, codes }).toEqual({ admitted: [2], codes: ['CONTENT_TOO_LARGE', 'POLICY'] })
  })

  test('that promises an answer has not said yes', async () => {
    const admit = (async () => true) as unknown as () => boolean
    expect((await judge({ admit }, outputsOf(map))).codes).toEqual(['POLICY'])
  })

  test('that throws is nobody’s no', async () => {
    const admit = (): boolean => {
      throw new Error('out of order')
    }
    await expect(judge({ admit }, outputsOf(map))).rejects.toThrow('out of order')
  })
})

describe('an ordinal that was admitted', () => {
  const strict: OrdinalsPolicy = { maxContentBytes: 10, contentTypes: ['text/plain'], admit: () => false }
  const first = chain.inscribe({ contentType: 'text/plain', body: utf8('hello') })
  const into = (lockingScript: Uint8Array): FakeTransaction =>
    chain.spend({ inputs: [first], outputs: [lockingScript] })
  const spent = { previousCoins: [0], with: [first] }

  test('is followed through a pure transfer whatever the policy', async () => {
    expect(await judge(strict, into(p2pkh(9)), spent)).toMatchObject({ admitted: [0], codes: [] })
  })

  test.each<[string, OrdinalsPolicy, Uint8Array, string]>([
    ['too large content', { maxContentBytes: 3 }, content('text/plain'), 'CONTENT_TOO_LARGE'],
    ['content of another type', { contentTypes: ['a/b'] }, content('text/plain'), 'CONTENT_TYPE_NOT_ALLOWED'],
    ['MAP that is not wanted', { admit: () => false }, map, 'POLICY'],
  ])('is not followed into %s', async (_, policy, script, code) => {
    expect(await judge(policy, into(script), spent)).toMatchObject({ admitted: [], codes: [code] })
  })
})

test('a mint’s name is judged by its type as any other content', async () => {
  const tree = new FakeChain()
  const mint = tree.mint('a')
  const refused = await judge({ contentTypes: ['image/*'] }, mint)
  expect(refused).toMatchObject({ admitted: [], codes: ['CONTENT_TYPE_NOT_ALLOWED'] })
  const taken = await judge({ contentTypes: ['image/*', 'application/name-claim'] }, mint)
  expect(taken).toMatchObject({ admitted: [2], codes: [] })
})

test('a refused output leaves the others alone, and is reported once', async () => {
  const subject = outputsOf(content('a/b'), content('text/plain'), content('a/c'), p2pkh(1), map)
  const { admitted, codes, refusals } = await judge({ contentTypes: ['text/*'] }, subject)
  const refused = 'CONTENT_TYPE_NOT_ALLOWED'
  expect({ admitted, codes }).toEqual({ admitted: [1, 4], codes: [refused, refused] })
  expect(refusals.map(({ message }) => message.slice(0, 9))).toEqual(['output 0 ', 'output 2 '])
})

test('what holds nothing is no matter of policy', async () => {
  expect((await judge({ admit: () => false }, outputsOf(p2pkh(1)))).codes).toEqual(['NO_ORDINAL'])
})

describe('GASP', () => {
  const manager = new OrdinalsTopicManager({ policy: { contentTypes: ['text/*'] } })

  test('brings nothing for what the policy refuses', async () => {
    const beef = beefOf(outputsOf(content('image/png')))
    await expect(manager.identifyNeededInputs(beef)).rejects.toThrow('no output can be an ordinal')
  })

  test('brings the inputs of what may be a pure transfer beside it', async () => {
    const beef = beefOf(outputsOf(content('image/png'), p2pkh(1)))
    expect(await manager.identifyNeededInputs(beef)).toHaveLength(1)
  })
})

test.each<OrdinalsPolicy>([
  { maxContentBytes: -1 },
  { maxContentBytes: Number.NaN },
  { contentTypes: ['image'] },
  { contentTypes: ['text/plain', 'image/*;q=1'] },
])('%j cannot be meant', (policy) => {
  const make = (): unknown => new OrdinalsTopicManager({ policy })
  expect(make).toThrow(expect.objectContaining({ code: 'BAD_POLICY' }))
})

test.each([
  ['text/plain', true],
  ['image/*', true],
  ['application/vnd.x-y+json', true],
  ['*/*', false],
  ['image/p*', false],
  ['', false],
  ['text/plain;a=b', false],
])('%j is a pattern: %p', (text, is) => {
  expect(isContentTypePattern(text)).toBe(is)
})

test('the topic says what this host takes', async () => {
  const plain = await new OrdinalsTopicManager().getDocumentation()
  expect(plain).toContain('pure transfer')
  expect(plain).not.toContain('This host accepts')
  const policy = { maxContentBytes: 1000, contentTypes: ['text/plain', 'image/*'], admit: () => true }
  const said = await new OrdinalsTopicManager({ policy }).getDocumentation()
  expect(said).toBe(
    `${plain}\nThis host accepts:\n\n- Content of at most 1000 bytes.\n- Content of these types: \`text/plain\`, \`image/*\`.\n- A rule of its own for what it collects.\n`,
  )
})
