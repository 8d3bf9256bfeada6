import { Transaction } from '@bsv/sdk'
import { decodeMineNode } from '../../../../backend/src/protocol/mine-node.js'
import { formatOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { HttpMineIndex } from '../../../../src/mining/mine-index.js'
import { mineName } from '../../../../src/mining/mine-name.js'
import { serverDeployment } from '../../../../src/mining/server-deployment.js'
import { FAKE_MINT_PAYER } from '../../../../src/payments/mints.js'
import { ask, posted } from '../../../support/server/test-server.js'
import { ARC_ERRORS, ARC_STATES, type ArcWord, hostileArc } from '../arc.js'
import type { Attack, Scene } from '../attack.js'
import { BODY_DEEDS, type BodyDeedName, bodyDeeds } from '../body-deeds.js'
import { expensiveChild } from '../expensive-mints.js'
import { MULTISIG_BYTES } from '../expensive-scripts.js'
import { forgedRoot, lookupAnswer, nodeAnswer } from '../hostile-nodes.js'
import { answer, type HostileServer } from '../hostile-server.js'
import { doing, forward, type IndexAnswers, indexFront } from '../index-front.js'
import { CONSENT, type HonestTree, type Stage } from '../stage.js'
import { hostileWallet, WALLET_DEEDS } from '../wallet.js'

/** The name that is mined where nothing else is said. */
const NAME = 'abc'
/** The coins of the key that pays, in satoshis: more than enough. */
const COINS = [30_000, 30_000, 30_000, 2_000_000]

const MINE = '/svc/names/mine'

/** `minetree mine`, paid by a key. */
export async function mineScene(
  stage: Stage,
  { url, tree, args = [], name = NAME }: { url: string; tree: HonestTree; args?: string[]; name?: string },
): Promise<Scene> {
  return { args: ['mine', name, '--url', url, ...(await stage.purse(...COINS)), ...args], env: tree.env }
}

function onIndex(
  deed: string,
  answers: (stage: Stage, tree: HonestTree) => IndexAnswers | Promise<IndexAnswers>,
): Attack {
  return {
    target: 'mine',
    server: 'index',
    deed,
    async set(stage) {
      const tree = await stage.tree()
      const front = await indexFront(stage, { behind: tree.url, answers: await answers(stage, tree) })
      return await mineScene(stage, { url: front.url, tree })
    },
  }
}

/** The routes of an index that a miner asks, in the order in which it does. */
const ROUTES = ['/deployment.json', MINE, '/lookup', '/submit'] as const

/** What is worth trying at every route; all else is tried at the first one only. */
const EVERYWHERE: readonly BodyDeedName[] = [
  'endless body',
  'gzip bomb',
  'hang',
  'redirect to an internal host',
  '60 MiB of empty objects',
]

/** All routes are read by the same few lines: by day, two of these deeds are done at each. */
const DAILY_EVERYWHERE: readonly string[] = ['endless body', 'redirect to an internal host']
/** One of each kind; what each status comes to is in `test/unit/cli/send-mint.test.ts`. */
const DAILY_WORDS: readonly string[] = [
  'RECEIVED',
  'SEEN_ON_NETWORK',
  'SEEN_IN_ORPHAN_MEMPOOL',
  'DOUBLE_SPEND_ATTEMPTED',
  'REJECTED',
  'HTTP 409',
  'HTTP 465',
  'HTTP 500',
]

const conflict = { error: 'another mint has spent the node', code: 'CONFLICT' }

/** What an index can do to a miner. */
export function mineIndexAttacks(): Attack[] {
  const bodies = ROUTES.flatMap((route, at) =>
    bodyDeeds()
      .filter(({ name }) => at === 0 || EVERYWHERE.includes(name as BodyDeedName))
      .map(({ name, deed, atNight }) => ({
        ...onIndex(`${name} at ${route}`, (stage) => ({ [route]: doing(deed, stage) })),
        atNight: atNight || (at > 0 && !DAILY_EVERYWHERE.includes(name)),
      })),
  )
  return [
    ...bodies,
    onIndex('409 to every mint', () => ({
      '/submit': (_, response) => answer(response, conflict, { status: 409 }),
    })),
    onIndex('a fresh copy of the root after every mint', (_, tree) => freshRoots(tree)),
    onIndex('a node that has moved, at every question', (_, { genesis }) => ({
      [MINE]: (__, response) => answer(response, nodeAnswer(forgedRoot({ genesis }))),
    })),
    onIndex('a node of 2 MB', (_, { genesis }) => {
      const node = forgedRoot({ genesis, codeBytes: 2_000_000 })
      return {
        [MINE]: (__, response) => answer(response, nodeAnswer(node)),
        '/lookup': (request, response) => answer(response, lookupAnswer(node, request)),
      }
    }),
    onIndex('a mint that conflicts with every mint', async (_, tree) => await conflicts(tree)),
    onIndex('two true nodes by turns', async (_, tree) => await turns(tree)),
    onIndex('that everything is taken', () => ({
      [MINE]: (_, response) => answer(response, { error: 'taken', code: 'TAKEN' }, { status: 404 }),
    })),
    ...MULTISIG_BYTES.map((bytes) =>
      onIndex(`a node whose proof has an OP_CHECKMULTISIG of ${bytes / 1000} KB`, async (_, tree) => {
        const node = await expensiveChild(tree, bytes)
        return {
          [MINE]: (__, response) => answer(response, nodeAnswer(node, node.domain)),
          '/lookup': (request, response) => answer(response, lookupAnswer(node, request)),
        }
      }),
    ),
    profileAttack,
    hardTree,
  ]
}

/** A root that nobody mined, and another one as soon as a mint of it was submitted. */
function freshRoots({ genesis }: HonestTree): IndexAnswers {
  let node = forgedRoot({ genesis })
  return {
    [MINE]: (_, response) => answer(response, nodeAnswer(node)),
    '/lookup': (request, response) => answer(response, lookupAnswer(node, request)),
    '/submit': (_, response) => {
      node = forgedRoot({ genesis })
      answer(response, conflict, { status: 409 })
    },
  }
}

/** Before a mint is submitted, its node is spent by a mint of another character. */
async function conflicts({ url }: HonestTree): Promise<IndexAnswers> {
  const { deployment } = await serverDeployment(url)
  const characters = [...'0123456789-zyxwvutsrqponmlkjihgfed']
  return {
    '/submit': async (request, response) => {
      const [character] = characters.splice(0, 1)
      const { outputs } = Transaction.fromBEEF(Array.from(request.body))
      const domain = domainOf(outputs[0]?.lockingScript.toUint8Array() ?? [])
      if (character !== undefined && domain !== undefined) {
        const index = new HttpMineIndex({ url })
        await mineName({ ...MINER, name: domain + character, deployment, index })
      }
      const { status, headers, body } = await forward(url, request)
      response.writeHead(status, { 'Content-Type': headers['content-type'] ?? '' }).end(body)
    },
  }
}

function domainOf(script: ArrayLike<number>): string | undefined {
  try {
    return decodeMineNode(Uint8Array.from(script)).domain
  } catch {
    return undefined
  }
}

/** The root as deployed, and as a mint left it: both descend from the genesis, and the answer swings between them. */
async function turns({ url, genesis }: HonestTree): Promise<IndexAnswers> {
  const { deployment } = await serverDeployment(url)
  const before = await askNode(url)
  await mineName({ ...MINER, name: 'z', deployment, index: new HttpMineIndex({ url }) })
  const after = await askNode(url)
  let asked = 0
  const node = () => (Math.floor(asked / 2) % 2 === 0 ? before : after)
  return {
    [MINE]: (_, response) => {
      asked++
      answer(response, node().named)
    },
    '/lookup': (_, response) => answer(response, node().history),
    '/submit': (_, response) =>
      answer(response, { ...conflict, error: formatOutpoint(genesis) }, { status: 409 }),
  }
}

async function askNode(url: string): Promise<{ named: unknown; history: Uint8Array }> {
  const question = posted({ service: 'ls_names', query: { node: '', history: true } })
  const headers = { ...question.headers, 'X-Aggregation': 'yes', Accept: 'application/octet-stream' }
  const { body } = await ask(url, '/lookup', { ...question, headers })
  return { named: (await ask(url, `${MINE}/q`)).json, history: Uint8Array.from(body) }
}

/** A competing miner, in this thread and with fake funding. */
const MINER = { ...FAKE_MINT_PAYER, workers: 0, chainTracker: 'scripts only' as const }

/** A server that follows a tree of the live network's rules, and says that it is a local one. */
const profileAttack: Attack = {
  target: 'mine',
  server: 'index',
  deed: 'says local where PROFILE=mainnet',
  async set(stage) {
    const tree = await stage.tree('mainnet')
    const front = await indexFront(stage, {
      behind: tree.url,
      answers: {
        '/deployment.json': async (request, response) => {
          const { json } = await forward(tree.url, request)
          answer(response, { ...(json as object), profile: 'local' })
        },
      },
    })
    return await mineScene(stage, { url: front.url, tree })
  },
}

/** Where nothing is configured, a server may name a tree in which a solution takes hours. */
const hardTree: Attack = {
  target: 'mine',
  server: 'index',
  deed: 'a tree of its own, of difficulty 32',
  async set(stage) {
    const tree = await stage.tree('local', 32)
    const { GENESIS: _, DIFFICULTY: __, ...env } = tree.env
    return await mineScene(stage, { url: tree.url, tree: { ...tree, env } })
  },
}

/** What ARC can do to a miner. */
export function mineArcAttacks(): Attack[] {
  const bodies = bodyDeeds('some').map(({ name, deed, atNight }) => ({
    name,
    says: deed as ArcWord,
    atNight,
  }))
  const words: [string, ArcWord][] = [
    ...ARC_STATES.map((state): [string, ArcWord] => [state, state]),
    ...ARC_ERRORS.map((status): [string, ArcWord] => [`HTTP ${status}`, status]),
  ]
  const statuses = words.map(([name, says]) => ({ name, says, atNight: !DAILY_WORDS.includes(name) }))
  return [...bodies, ...statuses].map(
    ({ name, says, atNight }): Attack => ({
      ...{ target: 'mine', server: 'ARC', deed: name, atNight },
      async set(stage) {
        const tree = await stage.tree()
        const front = await indexFront(stage, { behind: tree.url, answers: {} })
        const arc = await hostileArc(stage, says)
        return await mineScene(stage, { url: front.url, tree, args: ['--arc', arc.url] })
      },
    }),
  )
}

/** What a wallet can do to a miner. */
export function mineWalletAttacks(): Attack[] {
  const ofBody = [
    'endless body',
    'gzip bomb',
    'hang',
    'redirect to an internal host',
    '60 MiB of empty objects',
    'garbage',
  ] as const
  return [
    ...Object.entries(WALLET_DEEDS).map(([deed, does]) => walletAttack(deed, { deed: does })),
    ...ofBody.map((name) =>
      walletAttack(`${name} at createAction`, { calls: { createAction: BODY_DEEDS[name] } }),
    ),
    walletAttack('hang at signAction', { calls: { signAction: BODY_DEEDS.hang } }),
    walletAttack('endless body at getPublicKey', { calls: { getPublicKey: BODY_DEEDS['endless body'] } }),
  ]
}

function walletAttack(deed: string, options: Parameters<typeof hostileWallet>[1]): Attack {
  return {
    target: 'mine',
    server: 'wallet',
    deed,
    set: async (stage) => await walletScene(stage, options),
  }
}

async function walletScene(stage: Stage, options: Parameters<typeof hostileWallet>[1]): Promise<Scene> {
  const tree = await stage.tree()
  const front = await indexFront(stage, { behind: tree.url, answers: {} })
  const wallet = await hostileWallet(stage, options)
  const args = ['mine', NAME, '--url', front.url, '--wallet', wallet.url, ...CONSENT]
  return { args, env: tree.env }
}

/** What mining takes where nobody means harm. */
export const HONEST_MINING: readonly Attack[] = [
  {
    target: 'mine',
    server: 'honest',
    deed: 'paid by a key',
    async set(stage) {
      const tree = await stage.tree()
      const front: HostileServer = await indexFront(stage, { behind: tree.url, answers: {} })
      const arc = await hostileArc(stage)
      return await mineScene(stage, { url: front.url, tree, args: ['--arc', arc.url] })
    },
  },
  {
    target: 'mine',
    server: 'honest',
    deed: 'paid by a wallet',
    set: async (stage) => await walletScene(stage, {}),
  },
]
