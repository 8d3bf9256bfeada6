import { BEEF_V2, Beef, MerklePath, Transaction } from '@bsv/sdk'
import fc from 'fast-check'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { BeefError, MAX_BEEF_TRANSACTIONS } from '../../../backend/src/protocol/beef.js'
import { concatBytes, fromHex, joinBytes, reversed } from '../../../backend/src/protocol/bytes.js'
import { bytes, mutated } from '../../support/protocol/arbitraries.js'
import { blockOfTwo } from '../../support/protocol/block.js'
import {
  atomicOf,
  beefOf,
  FakeChain,
  type FakeTransaction,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { varint } from '../../support/protocol/raw-transaction.js'

const V1 = fromHex('0100beef')
const V2 = fromHex('0200beef')
const ATOMIC = fromHex('01010101')
const internal = (txid: string): Uint8Array => reversed(fromHex(txid))

/** A grandparent in a block, its spend and the spend of that, which no block has. */
function threeGenerations() {
  const chain = new FakeChain()
  const grandparent = chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: p2pkh(1) }] })
  const spend = (transaction: FakeTransaction, owner: number) =>
    chain.spend({
      inputs: [{ transaction, vout: 0 }],
      outputs: [{ satoshis: 1, lockingScript: p2pkh(owner) }],
    })
  const parent = spend(grandparent, 2)
  const child = spend(parent, 3)
  const v1 = beefOf(child, { proven: false, with: [grandparent, parent], unproven: [parent] })
  return { grandparent, parent, child, v1 }
}

/** A BEEF V1 of raw transactions without any proof, in this order. */
function bare(...raws: Uint8Array[]): Uint8Array {
  const entries = raws.flatMap((raw) => [raw, Uint8Array.of(0)])
  return joinBytes([V1, varint(0), varint(raws.length), ...entries])
}

function asV2(v1: Uint8Array): Uint8Array {
  const beef = Beef.fromBinary(Array.from(v1))
  beef.version = BEEF_V2
  return Uint8Array.from(beef.toBinary())
}

/** What the SDK, and with it the engine, takes a BEEF to be about. */
const subjectOfEngine = (beef: Uint8Array): string => Transaction.fromBEEF(Array.from(beef)).id('hex')

const { grandparent, parent, child, v1 } = threeGenerations()
const FORMS: [string, Uint8Array][] = [
  ['a BEEF V1', v1],
  ['a BEEF V2', asV2(v1)],
  ['an atomic BEEF V1', atomicOf(child.txid, v1)],
  ['an atomic BEEF V2', atomicOf(child.txid, asV2(v1))],
]

describe.each(FORMS)('%s', (_, beef) => {
  test('is read whole', () => {
    const contents = readBeef(beef)
    expect(contents.subject.txid).toBe(child.txid)
    expect(contents.subject).toEqual(child.transaction)
    expect([...contents.txids].sort()).toEqual([grandparent, parent, child].map(({ txid }) => txid).sort())
    for (const each of [grandparent, parent, child])
      expect(contents.transaction(each.txid)).toEqual(each.transaction)
    expect(contents.transaction('00'.repeat(32))).toBeUndefined()
  })

  test('has the proofs that it holds', () => {
    const contents = readBeef(beef)
    const proof = contents.proof(grandparent.txid)
    expect(proof?.height).toBe(grandparent.height)
    const path = MerklePath.fromBinary(Array.from(proof?.merklePath ?? []))
    expect(path.computeRoot(grandparent.txid)).toBe(grandparent.txid)
    for (const { txid } of [parent, child]) expect(contents.proof(txid)).toBeUndefined()
  })

  test('is read the same from numbers', () => {
    expect(readBeef(Array.from(beef)).subject).toEqual(child.transaction)
  })

  test('is read once for one array, and again for another', () => {
    const contents = readBeef(beef)
    expect(readBeef(beef)).toBe(contents)
    const again = readBeef(beef.slice())
    expect(again).not.toBe(contents)
    expect(again.subject).toEqual(contents.subject)
  })

  test('cut off anywhere is no BEEF', () => {
    for (let length = 0; length < beef.length; length++)
      expect(() => readBeef(beef.slice(0, length))).toThrow(BeefError)
  })

  test('with a byte more is no BEEF', () => {
    expect(() => readBeef(concatBytes(beef, Uint8Array.of(0)))).toThrow('extra bytes')
  })
})

describe('the subject', () => {
  test('is the atomic one wherever it stands', () => {
    const beef = atomicOf(parent.txid, v1)
    expect(readBeef(beef).subject.txid).toBe(parent.txid)
    expect(subjectOfEngine(beef)).toBe(parent.txid)
  })

  test('is missing where the atomic one is not there', () => {
    const beef = atomicOf(child.txid, beefOf(parent))
    expect(() => readBeef(beef)).toThrow('does not contain its subject')
  })

  test('is missing where there are no transactions', () => {
    expect(() => readBeef(bare())).toThrow('does not contain its subject')
  })

  test('is missing where only its txid is given', () => {
    const beef = joinBytes([V2, varint(0), varint(1), Uint8Array.of(2), internal(child.txid)])
    expect(() => readBeef(beef)).toThrow('does not contain its subject')
  })

  test('may have proven ones in any order behind it, but not after it', () => {
    const chain = new FakeChain()
    const first = chain.spend({ inputs: [], outputs: [{ satoshis: 3, lockingScript: p2pkh(1) }] })
    const spendOf = (transaction: typeof first, satoshis: number) =>
      chain.spend({ inputs: [{ transaction, vout: 0 }], outputs: [{ satoshis, lockingScript: p2pkh(1) }] })
    const second = spendOf(first, 2)
    const third = spendOf(second, 1)
    const proofs = new Map(
      [first, second].map((each) => [each.txid, readBeef(beefOf(each)).proof(each.txid)]),
    )
    const write = (...order: (typeof first)[]): Uint8Array =>
      encodeBeef(
        order.map(({ txid, raw }) => {
          const proof = proofs.get(txid)
          return { raw, ...(proof && { proof }) }
        }),
      )
    expect(readBeef(write(second, first, third)).subject.txid).toBe(third.txid)
    expect(() => readBeef(write(second, first))).toThrow(/parents first/)
    expect(() => readBeef(write(third, second, first))).toThrow(/parents first/)
  })

  test('is the one that the engine takes, in any order and any number', () => {
    const three = [grandparent, parent, child]
    const order = fc.array(fc.constantFrom(...three), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(order, fc.option(fc.constantFrom(...three)), (transactions, atomic) => {
        const plain = bare(...transactions.map(({ raw }) => raw))
        const beef = atomic === null ? plain : atomicOf(atomic.txid, plain)
        fc.pre(atomic === null || transactions.includes(atomic))
        const places = [grandparent, parent, child].map((each) => [
          transactions.indexOf(each),
          transactions.lastIndexOf(each),
        ])
        const isLate = [1, 2].some((at) => {
          const [first = -1] = places[at - 1] ?? []
          const [, last = -1] = places[at] ?? []
          return last !== -1 && first > last
        })
        if (atomic === null && isLate) expect(() => readBeef(beef)).toThrow(/parents first/)
        else expect(readBeef(beef).subject.txid).toBe(subjectOfEngine(beef))
      }),
    )
  })
})

// The SDK re-encodes counts before it hashes: taken as they are, the txid here would be another than the engine's.
test.each<[string, (raw: Uint8Array) => Uint8Array]>([
  ['the count of inputs', (raw) => concatBytes(raw.slice(0, 4), fromHex('fd0100'), raw.slice(5))],
  ['the length of a script', (raw) => concatBytes(raw.slice(0, 41), fromHex('fe6c000000'), raw.slice(42))],
  ['the count of outputs', (raw) => concatBytes(raw.slice(0, 154), fromHex('fd0100'), raw.slice(155))],
  ['a locking script', (raw) => concatBytes(raw.slice(0, 163), fromHex('fd1900'), raw.slice(164))],
])('a transaction that writes %s in more bytes than needed is refused', (_, rewrite) => {
  const longer = rewrite(parent.raw)
  expect(longer.length).toBeGreaterThan(parent.raw.length)
  expect(subjectOfEngine(bare(longer))).toBe(parent.txid)
  expect(() => readBeef(bare(longer))).toThrow('not minimally encoded')
})

test('transactions with scripts and lists of any size are canonical', () => {
  const chain = new FakeChain()
  for (const size of [0, 0xfc, 0xfd, 0xffff, 0x10000]) {
    const outputs = [{ satoshis: 1, lockingScript: new Uint8Array(size) }]
    const { raw, txid } = chain.spend({ inputs: [], outputs })
    expect(readBeef(bare(raw)).subject.txid).toBe(txid)
  }
  const outputs = Array.from({ length: 300 }, () => ({ satoshis: 1, lockingScript: new Uint8Array() }))
  const inputs = outputs.map(() => chain.madeUpCoin())
  const many = chain.spend({ inputs, outputs })
  expect(readBeef(bare(many.raw)).subject.txid).toBe(many.txid)
})

describe('a txid alone', () => {
  test('of an ancestor is passed over', () => {
    const beef = joinBytes([
      V2,
      varint(0),
      varint(2),
      Uint8Array.of(2),
      internal(parent.txid),
      Uint8Array.of(0),
      child.raw,
    ])
    const contents = readBeef(beef)
    expect(contents.subject.txid).toBe(child.txid)
    expect(contents.transaction(parent.txid)).toBeUndefined()
    expect(contents.txids).toEqual([child.txid])
  })
})

describe('a merkle path', () => {
  const withBump = (bump: Uint8Array): Uint8Array =>
    joinBytes([V1, varint(1), bump, varint(1), child.raw, fromHex('0100')])
  const leaf = (offset: number, flags: number, hash: string) =>
    concatBytes(varint(offset), Uint8Array.of(flags), internal(hash))

  test('proves each transaction of its block', () => {
    const block = blockOfTwo(parent, child, 900_000)
    const { proof } = readBeef(withBump(Uint8Array.from(block.toBinary())))
    for (const { txid } of [parent, child]) {
      const path = MerklePath.fromBinary(Array.from(proof(txid)?.merklePath ?? []))
      expect(path.computeRoot(txid)).toBe(block.computeRoot())
    }
  })

  test('that does not hold together is an error when it is asked for', () => {
    // Two levels, but of the second only a leaf that the first one has nothing to do with.
    const bump = joinBytes([
      varint(5),
      Uint8Array.of(2),
      varint(1),
      leaf(0, 2, child.txid),
      varint(1),
      leaf(9, 0, parent.txid),
    ])
    const contents = readBeef(withBump(bump))
    expect(() => contents.proof(child.txid)).toThrow(BeefError)
  })

  test('that comes twice counts as the SDK counts it: the first', () => {
    const [one, two] = [7, 8].map((height) =>
      Uint8Array.from(new MerklePath(height, [[{ offset: 0, hash: child.txid, txid: true }]]).toBinary()),
    )
    if (!one || !two) throw new Error('no paths')
    const beef = joinBytes([V1, varint(2), one, two, varint(1), child.raw, fromHex('0101')])
    expect(readBeef(beef).proof(child.txid)?.height).toBe(7)
    expect(Transaction.fromBEEF(Array.from(beef)).merklePath?.blockHeight).toBe(7)
  })
})

describe('bytes of any kind', () => {
  /** Everything that can be asked of a BEEF, or the error for it. */
  function readAll(beef: Uint8Array): void {
    try {
      const contents = readBeef(beef)
      for (const txid of contents.txids) contents.proof(txid)
    } catch (error) {
      expect(error).toBeInstanceOf(BeefError)
      expect(error).toMatchObject({ code: 'BAD_BEEF' })
    }
  }

  test('are a BEEF or a BeefError', () => {
    fc.assert(fc.property(bytes(), readAll))
  })

  test.each([
    ['V1', V1],
    ['V2', V2],
    ['atomic', concatBytes(ATOMIC, new Uint8Array(32), V1)],
  ])('after the start of %s too', (_, start) => {
    fc.assert(fc.property(bytes(), (rest) => readAll(concatBytes(start, rest))))
  })

  test.each(FORMS)('and %s with one thing changed', (_, beef) => {
    fc.assert(fc.property(mutated(fc.constant(beef)), readAll), { numRuns: 300 })
  })

  test('with more transactions than any ancestry are refused', () => {
    const empty = fromHex('01000000000000000000')
    const many = (count: number): Uint8Array =>
      joinBytes([
        V1,
        varint(0),
        varint(count),
        ...new Array<Uint8Array>(count).fill(concatBytes(empty, Uint8Array.of(0))),
      ])
    expect(readBeef(many(MAX_BEEF_TRANSACTIONS)).txids).toHaveLength(1)
    expect(() => readBeef(many(MAX_BEEF_TRANSACTIONS + 1))).toThrow('more than')
  })
})
