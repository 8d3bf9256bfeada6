import fc from 'fast-check'
import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { encodeEnvelope } from '../../../backend/src/protocol/inscription.js'
import {
  decodeMineNode,
  encodeMineNode,
  isClaimed,
  UNCLAIMED,
} from '../../../backend/src/protocol/mine-node.js'
import {
  encodeNameOutput,
  meetsDifficulty,
  ownerCommitment,
  proofOfWork,
} from '../../../backend/src/protocol/mint.js'
import { covenantChain, refusalByScript } from '../../support/mining/covenant-mints.js'
import { IS_NIGHTLY } from '../../support/nightly.js'
import {
  type FakeChain,
  type FakeNode,
  type FakeOutput,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { NON_STRICT } from '../../support/protocol/non-strict-mints.js'
import { Random } from '../../support/random.js'
import { type HeaderWorld, useHeaderWorlds } from '../../support/server/header-world.js'
import { expectRuns } from '../trial.js'

// Whatever a covenant of our own lets through, and a block holds, is followed: mints as perverse as the script allows, mined,
// and submitted over HTTP in random order with repeats and a restart.

const worlds = useHeaderWorlds()

const SCRIPTS = ['empty', 'short', 'envelope', 'name', 'node', 'return', 'long'] as const

/** One mint; numbers choose among what there is. */
const deed = fc.record({
  node: fc.nat(),
  character: fc.nat(),
  /** Beyond the non-strict ones: five minimal pushes. */
  unlocking: fc.nat(100),
  version: fc.constantFrom(0, 1, 2, 3, 0x7fffffff, 0x80000000, 0xffffffff),
  lockTime: fc.constantFrom(0, 1, 499_999_999, 2_000_000_000, 0xffffffff),
  sequence: fc.constantFrom(0, 1, 0x80000000, 0xfffffffe, 0xffffffff),
  nonce: fc.uint8Array({ maxLength: 80 }),
  lock: fc.constantFrom(...SCRIPTS),
  funding: fc.nat(4),
  position: fc.nat(4),
  trailing: fc.array(fc.record({ script: fc.constantFrom(...SCRIPTS), satoshis: fc.constantFrom(0, 1, 7) }), {
    maxLength: 5,
  }),
})
type Deed = typeof deed extends fc.Arbitrary<infer Value> ? Value : never

const plan = fc.record({
  covenantVersion: fc.constantFrom(1 as const, 2 as const),
  deeds: fc.array(deed, { minLength: 6, maxLength: 14 }),
  order: fc.nat(0xffff),
})

/** A tree that grows by mints, and what must be said of it. */
class PerverseTree {
  readonly mints: FakeTransaction[] = []
  readonly names = new Map<string, string>()
  private readonly nodes = new Map<string, FakeNode>()

  constructor(private readonly chain: FakeChain) {
    this.nodes.set('', chain.node(''))
  }

  get liveNodes(): Map<string, string> {
    return new Map(
      [...this.nodes].map(([domain, { outpoint }]) => [domain, `${outpoint.txid}_${outpoint.vout}`]),
    )
  }

  grow(of: Deed): void {
    const { chain } = this
    const { deployment } = chain
    const domains = [...this.nodes.keys()]
    const domain = domains[of.node % domains.length] ?? ''
    const from = this.nodes.get(domain)
    if (from === undefined) throw new Error('a live node is chosen')
    const { claimed, seed } = decodeMineNode(from.lockingScript)
    const free = ['a', 'b', 'c'].filter((each) => !isClaimed(claimed, each.charCodeAt(0)))
    const character = free[of.character % free.length]
    if (character === undefined) return
    const isFree = deployment.covenantVersion === 1
    const forms = isFree ? NON_STRICT : NON_STRICT.filter(({ version }) => version === 1)
    const unlocking = forms[of.unlocking % (forms.length + 3)]
    const ownerLock = this.script(of.lock, domain + character)
    const commitment = ownerCommitment({ domain, ownerLock, deployment })
    const start = concatBytes(commitment, of.nonce)
    const coins = Array.from({ length: of.funding }, () => chain.madeUpCoin())
    const mint = chain.mint(domain + character, {
      ...{ from, funding: coins, ownerLock, sequence: of.sequence },
      ...(isFree && {
        lockTime: of.lockTime,
        version: unlocking?.version === 1 ? of.version : (unlocking?.version ?? of.version),
      }),
      nonce: worked({ seed, character, start, difficulty: deployment.difficulty }),
      nodeInputPosition: Math.min(of.position, coins.length),
      trailing: of.trailing.map(({ script, satoshis }): FakeOutput => {
        return { satoshis, lockingScript: this.script(script, domain + character) }
      }),
      ...(unlocking && { unlockingScript: unlocking.script }),
    })
    const spend = {
      ...{ transaction: mint.transaction, spent: from, deployment },
      input: Math.min(of.position, coins.length),
    }
    // That the script lets it through, the SDK says as well; but for what interpreters disagree about.
    if (unlocking === undefined || !DISAGREED.test(unlocking.has))
      expect([refusalByScript(spend, 'block'), refusalByScript(spend)]).toContain(undefined)
    this.mints.push(mint)
    this.names.set(domain + character, mint.outpoint(2))
    for (const [vout, left] of [domain, domain + character].entries())
      this.nodes.set(left, nodeAt(mint, vout))
  }

  /** Locks and outputs, most of which look like something that the covenant writes. */
  private script(kind: (typeof SCRIPTS)[number], name: string): Uint8Array {
    const { deployment } = this.chain
    const { code } = decodeMineNode(this.chain.node('').lockingScript)
    const { genesis } = deployment
    switch (kind) {
      case 'empty':
        return new Uint8Array()
      case 'short':
        return p2pkh(name.length)
      case 'envelope':
        return concatBytes(encodeEnvelope({ contentType: deployment.nameContentType, body: utf8('zz') }))
      case 'name':
        return encodeNameOutput({ ownerLock: p2pkh(3), name, deployment })
      case 'node':
        return encodeMineNode({
          code,
          genesis,
          claimed: UNCLAIMED,
          domain: `${name}z`,
          seed: new Uint8Array(32),
        })
      case 'return':
        return Uint8Array.of(0x6a, 0x4d, 0xff, 0xff)
      case 'long':
        return inscriptionScript({ contentType: 'text/plain', body: new Uint8Array(300) })
    }
  }
}

/** What the SDK says no to, or is slow about, and another interpreter may say yes to. */
const DISAGREED = /signature|ELSE|takes long/

const nodeAt = ({ txid, transaction }: FakeTransaction, vout: number): FakeNode => {
  const output = transaction.outputs[vout]
  if (output === undefined) throw new Error(`no output ${vout}`)
  return { satoshis: output.satoshis, lockingScript: output.lockingScript, outpoint: { txid, vout } }
}

/** A nonce of any length with enough work; its last byte is counted up, and more are added where that does not do. */
function worked(search: {
  seed: Uint8Array
  character: string
  start: Uint8Array
  difficulty: number
}): Uint8Array {
  for (let nonce = search.start, tried = 0; ; nonce = concatBytes(search.start, Uint8Array.of(tried++)))
    if (meetsDifficulty(proofOfWork({ ...search, nonce }), search.difficulty)) return nonce
}

/** What the server says of every name, and of every node that is live. */
async function expectAnswers({ server }: HeaderWorld, tree: PerverseTree): Promise<void> {
  const answers = { names: new Map<string, unknown>(), nodes: new Map<string, unknown>() }
  for (const name of tree.names.keys())
    answers.names.set(
      name,
      ((await server.ask(`/svc/names/origin/${name}`)).json as { outpoint?: string }).outpoint,
    )
  for (const domain of tree.liveNodes.keys()) {
    const { json } = await server.ask(`/svc/names/mine/${domain}-`)
    const { domain: found, outpoint } = json as { domain?: string; outpoint?: string }
    answers.nodes.set(domain, found === domain ? outpoint : found)
  }
  expect(answers).toEqual({ names: tree.names, nodes: tree.liveNodes })
}

test('whatever the script lets through and a block holds is followed, in any order', async () => {
  await expectRuns({
    plan,
    runs: IS_NIGHTLY ? 120 : 5,
    async run({ covenantVersion, deeds, order }) {
      const chain = covenantChain({ covenantVersion })
      const tree = new PerverseTree(chain)
      for (const each of deeds) tree.grow(each)
      const { marker } = chain.deployment
      const NAME_MARKER = Buffer.from(marker).toString()
      let world = await worlds.start({ NAME_MARKER }, { chain })
      for (const mint of tree.mints) world.headers.mine([mint])
      const random = new Random(order)
      const queue = [...tree.mints, ...tree.mints.filter(() => random.next() < 0.3)]
        .map((mint) => ({ mint, at: random.next() }))
        .sort((one, other) => one.at - other.at)
      const restartAt = random.below(queue.length)
      for (const [at, { mint }] of queue.entries()) {
        if (at === restartAt) world = await world.restart()
        const sources = tree.mints.filter(
          ({ txid }) => random.next() < 0.3 && mint.transaction.inputs.some((input) => input.txid === txid),
        )
        expect(await world.submit(mint, sources)).toMatchObject({ status: 200 })
      }
      await expectAnswers(world, tree)
      await world.server.stop()
      return { [`mints of version ${covenantVersion}`]: tree.mints.length }
    },
  })
}, 600_000)
