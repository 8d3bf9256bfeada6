import { encodeBeef } from '../../backend/src/graph/assemble-beef.js'
import { parseOutpoint } from '../../backend/src/protocol/outpoint.js'
import { madeUpMint } from '../../src/mining/made-up-mint.js'
import { HttpMineIndex, type MineIndex, type ShownNode } from '../../src/mining/mine-index.js'
import { type MineNameOptions, type MiningEvent, mineName } from '../../src/mining/mine-name.js'
import { NodeMovedError } from '../../src/mining/mining-error.js'
import { searchWhileLive } from '../../src/mining/search-while-live.js'
import { beefOf, FakeChain, type FakeTransaction, p2pkh } from '../support/fake-chain.js'
import { at, recordsOf } from '../support/name-proofs.js'
import { type TestServer, treeOf, useServers } from '../support/test-server.js'

const servers = useServers()

/** A server with the root of a tree and these names. */
async function tree(...names: string[]) {
  const chain = new FakeChain({ difficulty: 8 })
  const server = await servers.start(treeOf(chain.deployment))
  const submit = async (...each: Parameters<typeof beefOf>[0][]): Promise<void> => {
    for (const transaction of each) expect((await server.submit(beefOf(transaction))).status).toBe(200)
  }
  await submit(chain.genesis, ...names.flatMap((name) => chain.mintAll(name)))
  return { chain, server, submit, index: new HttpMineIndex(server.url) }
}

/** Mines in this thread, with made-up money, and keeps what happens. */
function miner({ chain, index }: { chain: FakeChain; index: MineIndex }) {
  const events: MiningEvent[] = []
  return {
    events,
    happened: () =>
      events.filter(({ kind }) => kind !== 'searching').map(({ kind, name }) => `${kind} ${name}`),
    mine: (name: string, options: Partial<Omit<MineNameOptions, 'chainTracker'>> = {}) =>
      mineName({
        name,
        deployment: chain.deployment,
        index,
        pay: madeUpMint,
        ownerLock: async () => p2pkh(7),
        chainTracker: 'scripts only',
        workers: 0,
        onEvent: (event) => events.push(event),
        ...options,
      }),
  }
}

/** What an index shows of an output of the last of these transactions. */
function shown(transactions: readonly FakeTransaction[], vout: number): ShownNode {
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
  const minted = await mine('abcd', { ownerLock: async (name) => p2pkh(name.length) })
  expect(minted.map(({ mint }) => mint.name)).toEqual(['abc', 'abcd'])
  expect(happened()).toEqual(['started abc', 'minted abc', 'started abcd', 'minted abcd'])
  const { json } = await server.ask('/svc/names/abcd')
  const txid = minted[1]?.transaction.id('hex')
  expect(json).toMatchObject({ origin: `${txid}_2`, tip: { outpoint: `${txid}_2`, spent: false } })
  expect(minted.map(({ mint }) => mint.ownerLock)).toEqual([p2pkh(3), p2pkh(4)])
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

describe('a rival who moves the node', () => {
  test.each<[string, 'before it is paid for' | 'after it is paid for']>([
    ['while the solution is found', 'before it is paid for'],
    ['while the mint is on its way', 'after it is paid for'],
  ])('%s makes it worthless, and the miner goes on', async (_, when) => {
    const { chain, server, submit, index } = await tree()
    const paid: string[] = []
    const submitted: string[] = []
    const rival = chain.mint('r')
    let looks = 0
    const watched: MineIndex = {
      async liveNode(name) {
        if (when === 'before it is paid for' && ++looks === 2) await submit(rival)
        return await index.liveNode(name)
      },
      showNode: (name) => index.showNode(name),
      async submit(mint) {
        submitted.push(mint.txid)
        await index.submit(mint)
      },
    }
    const { mine, happened } = miner({ chain, index: watched })
    const minted = await mine('q', {
      async pay(draft) {
        const mint = await madeUpMint(draft)
        if (when === 'after it is paid for' && paid.length === 0) await submit(rival)
        paid.push(mint.transaction.id('hex'))
        return mint
      },
    })
    expect(happened()).toEqual(['started q', 'moved q', 'started q', 'minted q'])
    expect(await namesOf(server)).toEqual(['q', 'r'])
    // Of a solution for a seed that is no longer, nothing is paid and nothing sent where that is known.
    expect(paid).toHaveLength(when === 'before it is paid for' ? 1 : 2)
    expect(submitted).toEqual(paid)
    expect(minted[0]?.transaction.inputs[0]?.sourceTransaction?.id('hex')).toBe(rival.txid)
  })

  test('and takes the very name leaves nothing to mine', async () => {
    const { chain, submit, index } = await tree()
    const rival = chain.mint('q')
    const { mine, happened } = miner({ chain, index })
    const mining = mine('q', {
      async pay(draft) {
        await submit(rival)
        return await madeUpMint(draft)
      },
    })
    await expect(mining).rejects.toMatchObject({ code: 'TAKEN' })
    expect(happened()).toEqual(['started q'])
  })

  test('is told of by a wallet before the index knows', async () => {
    const { chain, submit, index } = await tree()
    const rival = chain.mint('r')
    const { mine, happened } = miner({ chain, index })
    let asked = 0
    await mine('q', {
      async pay(draft) {
        if (++asked > 1) return await madeUpMint(draft)
        await submit(rival)
        throw new Error('a double spend')
      },
    })
    expect(happened()).toEqual(['started q', 'moved q', 'started q', 'minted q'])
  })
})

test('two miners at one node get one name each, and nothing is counted twice', async () => {
  const { chain, server, index } = await tree('a')
  const [x, y] = [miner({ chain, index }), miner({ chain, index })] as const
  const minted = (await Promise.all([x.mine('axx'), y.mine('ayy')])).map((mints) =>
    mints.map(({ mint }) => mint.name),
  )
  expect(minted).toEqual([
    ['ax', 'axx'],
    ['ay', 'ayy'],
  ])
  expect(await namesOf(server)).toEqual(['a', 'ax', 'axx', 'ay', 'ayy'])
  const told = [...x.events, ...y.events].filter(({ kind }) => kind === 'minted').map(({ name }) => name)
  expect(told.sort()).toEqual(['ax', 'axx', 'ay', 'ayy'])
})

test('of two miners of one name, one gets it', async () => {
  const { chain, server, index } = await tree()
  const [x, y] = [miner({ chain, index }), miner({ chain, index })] as const
  const results = await Promise.allSettled([x.mine('q'), y.mine('q')])
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
  test.each(['', 'A', 'a b', 'ä', 'a'.repeat(256), 'a.b'])('%j', async (name) => {
    const { mine } = miner({ chain: new FakeChain(), index: new HttpMineIndex('http://127.0.0.1:9') })
    await expect(mine(name)).rejects.toMatchObject({ code: 'BAD_NAME' })
  })

  test('a name that is taken', async () => {
    const { chain, index } = await tree('q')
    await expect(miner({ chain, index }).mine('q')).rejects.toMatchObject({ code: 'TAKEN' })
  })

  test('in a tree that is not there', async () => {
    const chain = new FakeChain()
    const { url } = await servers.start(treeOf(chain.deployment))
    const mining = miner({ chain, index: new HttpMineIndex(url) }).mine('q')
    await expect(mining).rejects.toMatchObject({ code: 'BAD_INDEX' })
  })

  const outpoint = parseOutpoint(`${'ab'.repeat(32)}_0`)

  test.each<[string, (chain: FakeChain) => { domain?: string; shown: ShownNode }, string]>([
    ['a coin that is no node', ({ genesis }) => ({ shown: shown([genesis], 1) }), 'BAD_PROOF'],
    ['an output that is not there', ({ genesis }) => ({ shown: shown([genesis], 9) }), 'BAD_PROOF'],
    [
      'in a transaction that is not shown',
      ({ genesis }) => ({ shown: { ...shown([genesis], 0), outpoint } }),
      'BAD_PROOF',
    ],
    [
      'the root of another tree',
      () => ({ shown: shown([new FakeChain({ codeSize: 65 }).genesis], 0) }),
      'BAD_PROOF',
    ],
    ['a copy of the root', (chain) => ({ shown: shown([chain.genesis, copyOf(chain)], 0) }), 'BAD_PROOF'],
    [
      'minted from a copy of the root',
      (chain) => {
        const copy = copyOf(chain)
        const mint = chain.mint('a', { from: { ...chain.node(''), outpoint: at(copy, 0) } })
        return { shown: shown([chain.genesis, copy, mint], 1) }
      },
      'BAD_PROOF',
    ],
    [
      'minted with too little work',
      (chain) => ({ shown: shown([chain.genesis, chain.mint('a', { badWork: true })], 1) }),
      'BAD_PROOF',
    ],
    [
      'spent by what is shown beside it',
      (chain) => ({
        shown: { ...shown([chain.genesis, chain.mint('a')], 1), outpoint: chain.deployment.genesis },
      }),
      'BAD_PROOF',
    ],
    ['not in a BEEF', () => ({ shown: { outpoint, beef: Uint8Array.of(1, 2, 3) } }), 'BAD_PROOF'],
    [
      'a prefix of another name',
      (chain) => ({ domain: 'b', shown: shown([chain.genesis, chain.mint('b')], 1) }),
      'BAD_INDEX',
    ],
    [
      'the name itself',
      (chain) => ({ domain: 'ab', shown: shown([chain.genesis, chain.mint('a'), chain.mint('ab')], 1) }),
      'BAD_INDEX',
    ],
  ])('where an index says that the node is %s', async (_, lie, code) => {
    const chain = new FakeChain({ difficulty: 8 })
    const { domain = '', shown: node } = lie(chain)
    let paid = 0
    const index: MineIndex = {
      liveNode: async () => ({ domain, outpoint: node.outpoint }),
      showNode: async () => node,
      submit: async () => {},
    }
    const { mine, happened } = miner({ chain, index })
    const pay = (): Promise<never> => {
      paid++
      throw new Error('this was to be paid for')
    }
    await expect(mine('ab', { pay })).rejects.toMatchObject({ code })
    // A lie costs a request: nothing is searched, and nothing paid.
    expect({ happened: happened(), paid }).toEqual({ happened: [], paid: 0 })
  })
})

/** A coin that is locked as the root is. */
function copyOf(chain: FakeChain): FakeTransaction {
  return chain.spend({ inputs: [], outputs: [chain.node('')] })
}

describe('a server that lies while mining goes on', () => {
  /** A server that answers truly but for what it says of mints and nodes. */
  async function lyingTree(lie: (honest: HttpMineIndex, chain: FakeChain) => Partial<MineIndex>) {
    const { chain, server, index } = await tree()
    const asked = { shown: 0, submitted: 0, paid: 0 }
    const lying: MineIndex = {
      liveNode: (name) => index.liveNode(name),
      async showNode(name) {
        asked.shown++
        return await index.showNode(name)
      },
      async submit(mint) {
        await index.submit(mint)
      },
      ...lie(index, chain),
    }
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
      return await madeUpMint(draft)
    }
    return { asked, happened, server, mining: (name: string) => mine(name, { pay, watchEvery: 5 }) }
  }

  test('and refuses every mint is paid for once, and has to show the other one', async () => {
    const { asked, mining, happened } = await lyingTree(() => ({
      submit: () => Promise.reject(new NodeMovedError('another mint has spent the node')),
    }))
    const mined = mining('alice')
    await expect(mined).rejects.toMatchObject({ code: 'NO_RIVAL' })
    await expect(mined).rejects.toThrow('another mint has spent the node')
    expect(asked).toMatchObject({ paid: 1, submitted: 1 })
    expect(happened()).toEqual(['started a'])
  })

  test('and names another node each time is not paid at all', async () => {
    let looks = 0
    const { asked, mining } = await lyingTree((honest) => ({
      liveNode: async (name) =>
        ++looks === 1
          ? await honest.liveNode(name)
          : { domain: '', outpoint: parseOutpoint(`${looks.toString(16).padStart(64, '0')}_0`) },
    }))
    await expect(mining('alice')).rejects.toMatchObject({ code: 'NO_RIVAL' })
    expect(asked.paid).toBe(0)
  })

  test('and shows the root again after each mint is paid for no more than once', async () => {
    const { asked, mining, server } = await lyingTree((_honest, chain) => ({
      liveNode: async () => ({ domain: '', outpoint: chain.deployment.genesis }),
      showNode: async () => shown([chain.genesis], 0),
    }))
    // The child of the own mint is mined from next, and the server denies it before anything is paid for it.
    await expect(mining('alice')).rejects.toMatchObject({ code: 'NO_RIVAL' })
    expect(asked.paid).toBe(1)
    expect(await namesOf(server)).toEqual(['a'])
  })

  test('and lags behind is asked again before a search is begun anew', async () => {
    let looks = 0
    const { asked, mining, happened } = await lyingTree((honest, chain) => ({
      // One of its machines has not heard of the first mint when it is asked about the second.
      liveNode: async (name) =>
        ++looks === 4 ? { domain: '', outpoint: chain.deployment.genesis } : await honest.liveNode(name),
    }))
    expect(await mining('ab')).toHaveLength(2)
    expect(looks).toBeGreaterThan(4)
    expect({ paid: asked.paid, happened: happened() }).toEqual({
      paid: 2,
      happened: ['started a', 'minted a', 'started ab', 'started ab', 'minted ab'],
    })
  })

  test('is followed to the mint of a rival each time that it shows one, up to so many mints', async () => {
    const rivals = 'bcdefghijk'
    const { asked, mining, happened } = await lyingTree((honest, chain) => ({
      // Whoever does the work for it can take the node away each time.
      async submit() {
        const rival = chain.mint(rivals[asked.paid] ?? '')
        await honest.submit({ beef: beefOf(rival), txid: rival.txid, name: rivals[asked.paid] ?? '' })
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
      return { ...(await madeUpMint(draft)), fee }
    }
    const error = await mine(name, { pay, ...(budget && { budget }) }).catch((reason: unknown) => reason)
    return { error, allowed, names: await namesOf(server) }
  }

  test('is enough for a name of its length, and says what each mint may cost', async () => {
    expect(await mined('abc', {})).toMatchObject({ allowed: [5000, 5000, 5000], names: ['a', 'ab', 'abc'] })
    const { allowed } = await mined('abc', { maxFee: 12, maxTotal: 25 })
    expect(allowed).toEqual([12, 12, 5])
  })

  test('counts a mint whose fee was never told as what it was allowed', async () => {
    const { chain, index, submit } = await tree()
    const { mine } = miner({ chain, index })
    const allowed: number[] = []
    const pay = async (draft: Parameters<MineNameOptions['pay']>[0]): Promise<never> => {
      allowed.push(draft.maxFee)
      // It may have been sent: nobody knows, but that a rival has the node.
      await submit(chain.mint('bcd'[allowed.length - 1] ?? ''))
      throw new Error('the connection broke')
    }
    await expect(mine('a', { pay, budget: { maxFee: 10, maxTotal: 25 } })).rejects.toMatchObject({
      code: 'OVER_BUDGET',
    })
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

  test('of time ends a search', async () => {
    const chain = new FakeChain({ difficulty: 60 })
    const index: MineIndex = {
      liveNode: async () => ({ domain: '', outpoint: chain.deployment.genesis }),
      showNode: async () => shown([chain.genesis], 0),
      submit: () => Promise.reject(new Error('there is nothing to submit')),
    }
    const { mine } = miner({ chain, index })
    await expect(mine('q', { budget: { maxTime: 30 } })).rejects.toMatchObject({ code: 'OVER_BUDGET' })
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
