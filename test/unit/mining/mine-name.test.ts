import { PrivateKey } from '@bsv/sdk'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { decodeMineNode } from '../../../backend/src/protocol/mine-node.js'
import { ownerCommitment } from '../../../backend/src/protocol/mint.js'
import { HttpMineIndex, type MineIndex, type Shown } from '../../../src/mining/mine-index.js'
import {
  type MineNameOptions,
  type MiningEvent,
  mineName,
  searchWhileLive,
} from '../../../src/mining/mine-name.js'
import { MiningError, NodeMovedError } from '../../../src/mining/mining-error.js'
import type { PaidMint } from '../../../src/mining/mint-transaction.js'
import { FAKE_MINT_PAYER, walletMintPayer } from '../../../src/payments/mints.js'
import { at, recordsOf } from '../../support/client/name-proofs.js'
import { TestWallet } from '../../support/mining/test-wallet.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  OPEN_LOCK,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { coinsFor } from '../../support/protocol/transactions.js'
import { type TestServer, treeOf, useServers } from '../../support/server/test-server.js'

const servers = useServers()

/** A server with the root of a tree and these names. */
const tree = async (...names: string[]) => await treeOn(new FakeChain({ difficulty: 8 }), ...names)

async function treeOn(chain: FakeChain, ...names: string[]) {
  const server = await servers.start(treeOf(chain.deployment))
  const submit = async (...each: Parameters<typeof beefOf>[0][]): Promise<void> => {
    for (const transaction of each) await server.take(beefOf(transaction))
  }
  await submit(chain.genesis, ...names.flatMap((name) => chain.mintAll(name)))
  return { chain, server, submit, index: new HttpMineIndex({ url: server.url }) }
}

/** An index that answers as another does, in methods that can be replaced one by one. */
function sameAs(index: MineIndex): MineIndex {
  return {
    liveNode: (name) => index.liveNode(name),
    showNode: (name, known) => index.showNode(name, known),
    showName: (name, known) => index.showName(name, known),
    submit: (mint) => index.submit(mint),
  }
}

/** Mines in this thread, with fake funding, and records the events. */
function miner({ chain, index }: { chain: FakeChain; index: MineIndex }) {
  const events: MiningEvent[] = []
  return {
    events,
    happened: () => events.flatMap(({ kind, name }) => (kind === 'searching' ? [] : [`${kind} ${name}`])),
    mine: (name: string, options: Partial<Omit<MineNameOptions, 'chainTracker'>> = {}) =>
      mineName({
        ...{ name, deployment: chain.deployment, index, pay: FAKE_MINT_PAYER.pay },
        ...{ ownerLock: async () => p2pkh(7), chainTracker: 'scripts only', workers: 0 },
        onEvent: (event) => events.push(event),
        ...options,
      }),
  }
}

/** Where a search that began would not end in this life. */
const endless = () => {
  const chain = new FakeChain({ difficulty: 60 })
  const index: MineIndex = {
    liveNode: async () => ({ domain: '', outpoint: chain.deployment.genesis }),
    showNode: async () => shown([chain.genesis], 0),
    showName: async () => undefined,
    submit: () => Promise.reject(new Error('there is nothing to submit')),
  }
  return miner({ chain, index })
}

/** What an index shows of an output of the last of these transactions. */
function shown(transactions: readonly FakeTransaction[], vout: number): Shown {
  const txid = transactions.at(-1)?.txid ?? ''
  return { outpoint: { txid, vout }, beef: encodeBeef(recordsOf(transactions)) }
}

const namesOf = async (server: TestServer): Promise<string[]> => {
  const { names } = (await server.ask('/svc/names')).json as { names: { name: string }[] }
  return names.map(({ name }) => name)
}

test('what is missing of a name is mined, a character at a time', async () => {
  const { chain, server, index } = await tree('ab')
  const { mine, happened } = miner({ chain, index })
  const minted = await mine('abcd')
  expect(minted.map(({ mint }) => mint.name)).toEqual(['abc', 'abcd'])
  expect(happened()).toEqual(['started abc', 'minted abc', 'started abcd', 'minted abcd'])
  const { json } = await server.ask('/svc/names/abcd')
  const txid = minted[1]?.transaction.id('hex')
  expect(json).toMatchObject({ origin: `${txid}_2`, tip: { outpoint: `${txid}_2`, spent: false } })
})

test('a name is mined on where it was left', async () => {
  const { chain, server, index } = await tree()
  const stop = new AbortController()
  const { mine, events } = miner({ chain, index })
  const stopped = mine('xyz', {
    signal: stop.signal,
    onEvent: (event) => {
      events.push(event)
      if (event.kind === 'minted' && event.name === 'xy') stop.abort(new Error('enough'))
    },
  })
  await expect(stopped).rejects.toThrow('enough')
  expect(await namesOf(server)).toEqual(['x', 'xy'])
  expect((await mine('xyz')).map(({ mint }) => mint.name)).toEqual(['xyz'])
})

describe('the owner of a name', () => {
  test.each([1, 2] as const)('is asked for before each search in a tree of version %i', async (version) => {
    const { chain, index } = await treeOn(new FakeChain({ difficulty: 8, covenantVersion: version }), 'ab')
    const { mine, happened } = miner({ chain, index })
    const asked: string[] = []
    const ownerLock = async (name: string): Promise<Uint8Array> => {
      asked.push(`${name} after ${happened().length} events`)
      return p2pkh(name.length)
    }
    const minted = await mine('abcd', { ownerLock })
    expect(asked).toEqual(['abc after 0 events', 'abcd after 2 events'])
    for (const { mint } of minted) {
      const commitment = ownerCommitment({ ...mint, deployment: chain.deployment })
      expect(commitment).toHaveLength(version === 1 ? 0 : 8)
      expect(mint.nonce.subarray(0, commitment.length)).toEqual(commitment)
      expect(mint.nonce).toHaveLength(22)
      expect(mint.ownerLock).toEqual(p2pkh(mint.name.length))
    }
  })

  test('is a wallet, which refuses to give a key: then nothing is searched', async () => {
    const { mine, events } = endless()
    const wallet = new TestWallet(coinsFor(new PrivateKey(7), 20_000))
    wallet.faults.key = () => {
      throw new Error('the user said no')
    }
    await expect(mine('q', walletMintPayer(wallet))).rejects.toThrow('the user said no')
    expect({ events, actions: wallet.actions }).toEqual({ events: [], actions: [] })
  })

  test('is a wallet, which asks its user once for all of a name', async () => {
    const { chain, index } = await tree()
    const wallet = new TestWallet(coinsFor(new PrivateKey(7), 50_000))
    wallet.fee = 200
    const { mine } = miner({ chain, index })
    await mine('abc', walletMintPayer(wallet, { name: 'abc' }))
    expect(wallet.prompts).toEqual(['basket minetree names', 'pay Mint the name a'])
    expect(wallet.sent).toHaveLength(3)
    // Once for the lock of the coins, and once for what unlocks them.
    expect(wallet.keysAsked.filter((key) => key === 'mint coins')).toHaveLength(2)
    // Nothing is left of what the first has set aside.
    expect((await wallet.listOutputs({ basket: 'minetree names' })).totalOutputs).toBe(3)
  })

  test('is a wallet, and coins that a stopped run has left pay for the next one', async () => {
    const { chain, index } = await tree()
    const wallet = new TestWallet(coinsFor(new PrivateKey(7), 50_000))
    wallet.fee = 200
    const { mine, events } = miner({ chain, index })
    const keep = async (): Promise<void> => {
      if (wallet.sent.length === 1) throw new Error('enough')
    }
    await expect(mine('abc', walletMintPayer(wallet, { name: 'abc', keep }))).rejects.toThrow('enough')
    expect(events.filter(({ kind }) => kind === 'minted')).toHaveLength(1)
    await mine('abd', walletMintPayer(wallet, { name: 'abd' }))
    expect(wallet.prompts).toEqual(['basket minetree names', 'pay Mint the name a'])
  })

  test('may never be named, and the time of the mining is over all the same', async () => {
    const { mine, events } = endless()
    const stop = new AbortController()
    const ownerLock = (): Promise<never> => {
      stop.abort(new Error('enough'))
      return new Promise(() => {})
    }
    await expect(mine('q', { ownerLock, signal: stop.signal })).rejects.toThrow('enough')
    expect(events).toEqual([])
  })
})

test('a search is given up when the node moves', async () => {
  let looks = 0
  const searching = searchWhileLive({
    // A solution is not found in this life.
    search: { seed: new Uint8Array(32), character: 'q', difficulty: 60 },
    isLive: async () => ++looks < 3,
    workers: 0,
    watchEvery: 5,
  })
  await expect(searching).rejects.toMatchObject({ code: 'NODE_MOVED' })
  expect(looks).toBe(3)
})

describe('a competing mint that spends the node', () => {
  test.each([
    ['while the solution is found', false],
    ['while the mint is on its way', true],
  ])('%s makes it worthless, and the miner goes on', async (_, isPaid) => {
    const { chain, server, submit, index } = await tree()
    const paid: string[] = []
    const submitted: string[] = []
    const conflicting = chain.mint('r')
    let looks = 0
    const watched: MineIndex = {
      ...sameAs(index),
      async liveNode(name) {
        if (!isPaid && ++looks === 2) await submit(conflicting)
        return await index.liveNode(name)
      },
      async submit(mint) {
        submitted.push(mint.txid)
        await index.submit(mint)
      },
    }
    const { mine, happened } = miner({ chain, index: watched })
    const minted = await mine('q', {
      async pay(draft) {
        const mint = await FAKE_MINT_PAYER.pay(draft)
        if (isPaid && paid.length === 0) await submit(conflicting)
        paid.push(mint.transaction.id('hex'))
        return mint
      },
    })
    expect(happened()).toEqual(['started q', 'moved q', 'started q', 'minted q'])
    expect(await namesOf(server)).toEqual(['q', 'r'])
    // Of a solution for a seed that is no longer, nothing is paid and nothing sent where that is known.
    expect(paid).toHaveLength(isPaid ? 2 : 1)
    expect(submitted).toEqual(paid)
    expect(minted[0]?.transaction.inputs[0]?.sourceTransaction?.id('hex')).toBe(conflicting.txid)
  })

  test('and takes the very name leaves nothing to mine', async () => {
    const { chain, submit, index } = await tree()
    const conflicting = chain.mint('q')
    const { mine, happened } = miner({ chain, index })
    const mining = mine('q', {
      async pay(draft) {
        await submit(conflicting)
        return await FAKE_MINT_PAYER.pay(draft)
      },
    })
    await expect(mining).rejects.toMatchObject({ code: 'TAKEN' })
    expect(happened()).toEqual(['started q'])
  })

  test('is reported by a wallet before the index knows', async () => {
    const { chain, submit, index } = await tree()
    const conflicting = chain.mint('r')
    const { mine, happened } = miner({ chain, index })
    let asked = 0
    const owners: string[] = []
    await mine('q', {
      async ownerLock(name) {
        owners.push(name)
        return p2pkh(owners.length)
      },
      async pay(draft) {
        if (++asked > 1) return await FAKE_MINT_PAYER.pay(draft)
        await submit(conflicting)
        throw new Error('a double spend')
      },
    })
    expect(happened()).toEqual(['started q', 'moved q', 'started q', 'minted q'])
    // Each attempt is for the owner that is named for it.
    expect(owners).toEqual(['q', 'q'])
  })
})

test('two miners at one node get one name each, and nothing is counted twice', async () => {
  const { chain, server, index } = await tree('a')
  const [x, y] = [miner({ chain, index }), miner({ chain, index })] as const
  const minted = await Promise.all([x.mine('axx'), y.mine('ayy')])
  expect(minted.map((mints) => mints.map(({ mint }) => mint.name).join())).toEqual(['ax,axx', 'ay,ayy'])
  expect(await namesOf(server)).toEqual(['a', 'ax', 'axx', 'ay', 'ayy'])
  const events = [...x.events, ...y.events].filter(({ kind }) => kind === 'minted')
  expect(events.map(({ name }) => name).sort()).toEqual(['ax', 'axx', 'ay', 'ayy'])
})

describe('a mint that somebody puts into another transaction', () => {
  const ownerLock = p2pkh(7)

  /** The same solution in a transaction with other coins and one output more. */
  const reissued = (chain: FakeChain, { plan }: Parameters<MineNameOptions['pay']>[0]): FakeTransaction =>
    chain.mint(decodeMineNode(plan.node.lockingScript).domain + plan.character, {
      nonce: plan.nonce,
      ownerLock: plan.ownerLock,
      trailing: [{ satoshis: 7, lockingScript: OPEN_LOCK }],
    })

  /** Mines a name whose first mint comes to the index in another transaction. */
  async function overtaken(
    name: string,
    options: {
      by?: typeof reissued
      payFails?: boolean
      lost?: NonNullable<MineNameOptions['lost']>
      showName?: (honest: HttpMineIndex, chain: FakeChain) => MineIndex['showName']
    } = {},
  ) {
    const { by = reissued, payFails = false, lost, showName } = options
    const { chain, server, submit, index } = await tree()
    const { mine, events, happened } = miner({
      chain,
      index: { ...sameAs(index), ...(showName && { showName: showName(index, chain) }) },
    })
    const others: string[] = []
    const own: string[] = []
    const result = await mine(name, {
      ownerLock: async () => ownerLock,
      ...(lost && { lost }),
      async pay(draft) {
        const paid = await FAKE_MINT_PAYER.pay(draft)
        own.push(paid.transaction.id('hex'))
        if (others.length > 0) return paid
        const other = by(chain, draft)
        others.push(other.txid)
        await submit(other)
        if (payFails) throw new Error('466: a conflicting transaction is known')
        return paid
      },
    }).catch((error: unknown) => error)
    const minted = events.flatMap((event) =>
      event.kind === 'minted' ? [{ name: event.name, txid: event.txid, byOther: event.byOther }] : [],
    )
    return { result, minted, happened: happened(), other: others[0], own, names: await namesOf(server) }
  }

  test.each([
    ['a server refuses ours', false],
    ['the sender of ours hears of it first', true],
  ])('counts as the mint of the name, and is mined on from: %s', async (_, payFails) => {
    const last = await overtaken('q', { payFails })
    expect(last.minted).toEqual([{ name: 'q', txid: last.other, byOther: true }])
    expect(last.own).not.toContain(last.other)
    // What was paid for is not what counts.
    expect(last.result).toEqual([])
    expect(last.happened).toEqual(['started q', 'minted q'])
    const { result, minted, other, own, happened, names } = await overtaken('qx', { payFails })
    const next = { name: 'qx', txid: own[1], byOther: false }
    expect(minted).toEqual([{ name: 'q', txid: other, byOther: true }, next])
    expect(happened).toEqual(['started q', 'minted q', 'started qx', 'minted qx'])
    expect((result as PaidMint[])[0]?.transaction.inputs[0]?.sourceTransaction?.id('hex')).toBe(other)
    expect(names).toEqual(['q', 'qx'])
  })

  test('makes ours a lost one', async () => {
    const lost: { txid: string; proven: boolean }[] = []
    const note = async ({ transaction }: PaidMint, { proven }: { proven: boolean }): Promise<void> =>
      void lost.push({ txid: transaction.id('hex'), proven })
    const last = await overtaken('q', { lost: note })
    const first = await overtaken('qx', { lost: note })
    // Nobody asked for headers, so nothing counts as proven.
    expect(lost).toEqual([last.own[0], first.own[0]].map((txid) => ({ txid, proven: false })))
  })

  test('gives the last name to its owner although nobody knows which of the two a block will hold', async () => {
    const lost = (): Promise<never> => Promise.reject(new MiningError('UNDECIDED', 'the network has ours'))
    const last = await overtaken('q', { lost })
    expect(last.result).toEqual([])
    expect(last.minted).toEqual([{ name: 'q', txid: last.other, byOther: true }])
    // What is mined from one of them would be lost with it.
    const first = await overtaken('qx', { lost })
    expect(first.result).toMatchObject({ code: 'UNDECIDED' })
    expect(first.names).toEqual(['q'])
  })

  const forAnother: typeof reissued = (chain) => chain.mint('q', { ownerLock: p2pkh(8) })
  test.each<[string, ((honest: HttpMineIndex, chain: FakeChain) => MineIndex['showName'])?]>([
    ['is a conflicting mint'],
    [
      'is that too where a server shows ours for the name alone, and not before the next node',
      (_, chain) => {
        const root = chain.node('')
        return async () => shown([chain.genesis, chain.mint('q', { from: root, ownerLock })], 2)
      },
    ],
  ])('and that is for another owner %s', async (_, showName) => {
    const options = { by: forAnother, ...(showName && { showName }) }
    if (!showName) expect((await overtaken('q', options)).result).toMatchObject({ code: 'TAKEN' })
    const { happened, minted } = await overtaken('qx', options)
    expect(happened).toEqual(['started q', 'moved q', 'started qx', 'minted qx'])
    expect(minted).toMatchObject([{ name: 'qx', byOther: false }])
  })

  test.each<[string, (honest: HttpMineIndex, chain: FakeChain) => MineIndex['showName']]>([
    ['nothing', () => async () => undefined],
    ['no BEEF', () => async () => ({ outpoint: { txid: '', vout: 2 }, beef: Uint8Array.of(1, 2, 3) })],
    ['a mint of a copy of the root', (_, chain) => async () => copiedMint(chain)],
    ['no answer', () => () => Promise.reject(new MiningError('NO_ANSWER', 'it is away'))],
  ])('is a conflicting mint if a server shows %s for the name', async (_, showName) => {
    expect((await overtaken('q', { showName })).result).toMatchObject({ code: 'TAKEN' })
    expect((await overtaken('qx', { showName })).happened).toContain('moved q')
  })

  const copiedMint = (chain: FakeChain): Shown => {
    const copy = copyOf(chain)
    const mint = chain.mint('q', { from: { ...chain.node(''), outpoint: at(copy, 0) }, ownerLock })
    return shown([chain.genesis, copy, mint], 2)
  }
})

test('a server that refuses a mint and shows that very mint has taken it', async () => {
  const { chain, server, index } = await tree()
  const refusing: MineIndex = {
    ...sameAs(index),
    async submit(mint) {
      await index.submit(mint)
      throw new NodeMovedError('another mint has spent the node')
    },
  }
  const { mine, events } = miner({ chain, index: refusing })
  const minted = await mine('qx', { lost: () => Promise.reject(new Error('it is not lost')) })
  expect(minted.map(({ mint }) => mint.name)).toEqual(['q', 'qx'])
  const own = { byOther: false }
  expect(events.filter((event) => event.kind === 'minted')).toMatchObject([own, own])
  expect(await namesOf(server)).toEqual(['q', 'qx'])
})

test('of two miners of one name for one owner, both find it minted', async () => {
  const { chain, server, index } = await tree()
  const [x, y] = [miner({ chain, index }), miner({ chain, index })] as const
  // Whichever learns of the other's mint before it has paid ends with TAKEN.
  let solved = 0
  let proceed = (): void => {}
  const bothSolved = new Promise<void>((resolve) => (proceed = resolve))
  const pay: typeof FAKE_MINT_PAYER.pay = async (draft) => {
    if (++solved === 2) proceed()
    await bothSolved
    return await FAKE_MINT_PAYER.pay(draft)
  }
  const minted = await Promise.all([x.mine('q', { pay }), y.mine('q', { pay })])
  // One of them has paid for it.
  expect(minted.map(({ length }) => length).sort()).toEqual([0, 1])
  expect([...x.events, ...y.events].filter(({ kind }) => kind === 'minted')).toHaveLength(2)
  expect(await namesOf(server)).toEqual(['q'])
})

test('of two miners of one name, one gets it', async () => {
  const { chain, server, index } = await tree()
  const [x, y] = [miner({ chain, index }), miner({ chain, index })] as const
  const forOwner = (owner: number) => ({ ownerLock: async () => p2pkh(owner) })
  const results = await Promise.allSettled([x.mine('q', forOwner(1)), y.mine('q', forOwner(2))])
  expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  expect(results.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'TAKEN' } })
  expect(await namesOf(server)).toEqual(['q'])
})

test('what payers throw for other reasons ends the mining', async () => {
  const { chain, index } = await tree()
  const { mine } = miner({ chain, index })
  const pay = (): Promise<never> => Promise.reject(new Error('the purse is empty'))
  await expect(mine('q', { pay })).rejects.toThrow('the purse is empty')
})

describe('what cannot be mined', () => {
  test('what is no name', async () => {
    const { mine } = miner({
      chain: new FakeChain(),
      index: new HttpMineIndex({ url: 'http://127.0.0.1:9' }),
    })
    for (const name of ['', 'A', 'a b', 'ä', 'a'.repeat(256), 'a.b'])
      await expect(mine(name), name).rejects.toMatchObject({ code: 'BAD_NAME' })
  })

  test('a name that is taken', async () => {
    const { chain, index } = await tree('q')
    await expect(miner({ chain, index }).mine('q')).rejects.toMatchObject({ code: 'TAKEN' })
  })

  test('in a tree that is not there', async () => {
    const chain = new FakeChain()
    const { url } = await servers.start(treeOf(chain.deployment))
    const mining = miner({ chain, index: new HttpMineIndex({ url }) }).mine('q')
    await expect(mining).rejects.toMatchObject({ code: 'BAD_INDEX' })
  })

  const spentRoot = (chain: FakeChain): Shown => ({
    ...{ ...shown([chain.genesis, chain.mint('a')], 1), outpoint: chain.deployment.genesis },
  })
  test.each<[string, lie: (chain: FakeChain) => Shown, code: string, domain?: string]>([
    ['a coin that is no node', ({ genesis }) => shown([genesis], 1), 'BAD_PROOF'],
    ['a copy of the root', (chain) => shown([chain.genesis, copyOf(chain)], 0), 'BAD_PROOF'],
    ['spent by what is shown beside it', spentRoot, 'BAD_PROOF'],
    ['a prefix of another', (chain) => shown([chain.genesis, chain.mint('b')], 1), 'BAD_INDEX', 'b'],
    ['the name itself', (chain) => shown([chain.genesis, ...chain.mintAll('ab')], 1), 'BAD_INDEX', 'ab'],
  ])('where an index says that the node is %s', async (_, lie, code, domain = '') => {
    const chain = new FakeChain({ difficulty: 8 })
    const node = lie(chain)
    let paid = 0
    const index: MineIndex = {
      liveNode: async () => ({ domain, outpoint: node.outpoint }),
      showNode: async () => node,
      showName: async () => undefined,
      submit: async () => {},
    }
    const { mine, happened } = miner({ chain, index })
    const pay = (): Promise<never> => {
      paid++
      throw new Error('this was to be paid for')
    }
    await expect(mine('ab', { pay })).rejects.toMatchObject({ code })
    // A lie costs a request: nothing is searched, and nothing paid.
    expect([paid, ...happened()]).toEqual([0])
  })
})

/** A coin that is locked as the root is. */
const copyOf = (chain: FakeChain): FakeTransaction => chain.spend({ inputs: [], outputs: [chain.node('')] })

describe('a server that lies while mining goes on', () => {
  /** A server that answers truly but for what it says of mints and nodes. */
  async function lyingTree(lie: (honest: HttpMineIndex, chain: FakeChain) => Partial<MineIndex>) {
    const { chain, server, index } = await tree()
    const asked = { submitted: 0, paid: 0 }
    const lying: MineIndex = { ...sameAs(index), ...lie(index, chain) }
    const counting: MineIndex = {
      ...lying,
      async submit(mint) {
        asked.submitted++
        await lying.submit(mint)
      },
    }
    const { mine, happened } = miner({ chain, index: counting })
    const pay = async (draft: Parameters<MineNameOptions['pay']>[0]) => {
      asked.paid++
      return await FAKE_MINT_PAYER.pay(draft)
    }
    return { asked, happened, server, mining: (name: string) => mine(name, { pay, watchEvery: 5 }) }
  }

  test('and refuses every mint is paid for once, and has to show the other one', async () => {
    const { asked, mining, happened } = await lyingTree(() => ({
      submit: () => Promise.reject(new NodeMovedError('another mint has spent the node')),
    }))
    const mined = mining('alice')
    await expect(mined).rejects.toMatchObject({ code: 'NOT_SHOWN' })
    await expect(mined).rejects.toThrow('another mint has spent the node')
    expect(asked).toMatchObject({ paid: 1, submitted: 1 })
    expect(happened()).toEqual(['started a'])
  })

  test('and names another node each time is not paid at all', async () => {
    let looks = 0
    const other = () => ({ domain: '', outpoint: { txid: looks.toString(16).padStart(64, '0'), vout: 0 } })
    const { asked, mining } = await lyingTree((honest) => ({
      liveNode: async (name) => (++looks === 1 ? await honest.liveNode(name) : other()),
    }))
    await expect(mining('alice')).rejects.toMatchObject({ code: 'NOT_SHOWN' })
    expect(asked.paid).toBe(0)
  })

  test('and shows the root again after each mint is paid for no more than once', async () => {
    const { asked, mining, server } = await lyingTree((_honest, chain) => ({
      liveNode: async () => ({ domain: '', outpoint: chain.deployment.genesis }),
      showNode: async () => shown([chain.genesis], 0),
    }))
    // The child of the own mint is mined from next, and the server denies it before anything is paid for it.
    await expect(mining('alice')).rejects.toMatchObject({ code: 'NOT_SHOWN' })
    expect(asked.paid).toBe(1)
    expect(await namesOf(server)).toEqual(['a'])
  })

  test('and lags behind is asked again before another search starts', async () => {
    let looks = 0
    const { asked, mining, happened } = await lyingTree((honest, chain) => ({
      // One of its machines has not heard of the first mint when it is asked about the second, seen or not.
      liveNode: async (name) =>
        name === 'ab' && [2, 3].includes(++looks)
          ? { domain: '', outpoint: chain.deployment.genesis }
          : await honest.liveNode(name),
    }))
    expect(await mining('ab')).toHaveLength(2)
    expect(looks).toBeGreaterThan(2)
    expect([asked.paid, ...happened()]).toEqual([2, 'started a', 'minted a', 'started ab', 'minted ab'])
  })

  test('is followed to a conflicting mint each time that it shows one, up to the limit of mints', async () => {
    const { asked, mining, happened } = await lyingTree((honest, chain) => ({
      // Anyone who does the work can spend the node each time.
      async submit() {
        const name = 'bcdefghijk'[asked.paid] ?? ''
        const conflicting = chain.mint(name)
        await honest.submit({ beef: beefOf(conflicting), txid: conflicting.txid, name })
        throw new NodeMovedError('another mint has spent the node')
      },
    }))
    await expect(mining('a')).rejects.toMatchObject({ code: 'OVER_BUDGET' })
    expect(asked.paid).toBe(4)
    expect(happened().filter((event) => event.startsWith('moved'))).toHaveLength(4)
  })
})

describe('a budget', () => {
  const mined = async (name: string, budget: MineNameOptions['budget'], fee = 10) => {
    const { chain, index, server } = await tree()
    const { mine } = miner({ chain, index })
    const allowed: number[] = []
    const pay = async (draft: Parameters<MineNameOptions['pay']>[0]) => {
      allowed.push(draft.maxFee)
      return { ...(await FAKE_MINT_PAYER.pay(draft)), fee }
    }
    const error = await mine(name, { pay, ...(budget && { budget }) }).catch((reason: unknown) => reason)
    return { error, allowed, names: await namesOf(server) }
  }

  test('is enough for a name of its length, and says what each mint may cost', async () => {
    expect(await mined('abc', {})).toMatchObject({ allowed: [5000, 5000, 5000], names: ['a', 'ab', 'abc'] })
    const { allowed } = await mined('abc', { maxFee: 12, maxTotal: 25 })
    expect(allowed).toEqual([12, 12, 5])
  })

  test('counts a mint of unknown fee as what it was allowed', async () => {
    const { chain, index, submit } = await tree()
    const { mine } = miner({ chain, index })
    const allowed: number[] = []
    const pay = async (draft: Parameters<MineNameOptions['pay']>[0]): Promise<never> => {
      allowed.push(draft.maxFee)
      // It may have been sent: all that is known is that a conflicting mint has the node.
      await submit(chain.mint('bcd'[allowed.length - 1] ?? ''))
      throw new Error('the connection broke')
    }
    const mining = mine('a', { pay, budget: { maxFee: 10, maxTotal: 25 } })
    await expect(mining).rejects.toMatchObject({ code: 'OVER_BUDGET' })
    expect(allowed).toEqual([10, 10, 5])
  })

  test.each([
    ['mints', { maxMints: 2 }, /2 mints were paid for/],
    ['fees', { maxTotal: 20 }, /20 satoshis of fees were paid/],
  ])('of %s ends the mining, and what was minted stays', async (_, budget, message) => {
    const { error, names } = await mined('abc', budget)
    expect(error).toMatchObject({ code: 'OVER_BUDGET', message: expect.stringMatching(message) })
    expect(names).toEqual(['a', 'ab'])
  })

  test('of time ends a search, and with it the questions for its node', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const { mine } = endless()
    await expect(mine('q', { budget: { maxTime: 30 } })).rejects.toMatchObject({ code: 'OVER_BUDGET' })
    expect(vi.getTimerCount()).toBe(0)
  })

  test('is shown for approval before anything is searched', async () => {
    const { chain, index } = await tree('a')
    const { mine, events } = miner({ chain, index })
    const plans: unknown[] = []
    const approve: MineNameOptions['approve'] = async ({ node, missing, budget }) => {
      plans.push({ domain: node.domain, missing, budget })
      throw new Error('too dear')
    }
    await expect(mine('abc', { approve, budget: { maxFee: 7 } })).rejects.toThrow('too dear')
    const budget = { maxFee: 7, maxMints: 5, maxTotal: 35, maxTime: 3_600_000 }
    expect(plans).toEqual([{ domain: 'a', missing: 'bc', budget }])
    expect(events).toEqual([])
  })
})
