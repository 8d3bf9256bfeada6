import type { Request, RequestHandler } from 'express'
import { z } from 'zod'
import { versionOfTree } from '../../../backend/src/graph/pinned-tree.js'
import { readUtf8, toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import { MAX_NAME_LENGTH, NAME_CHARACTERS } from '../../../backend/src/protocol/mine-node.js'
import {
  COVENANT_VERSIONS,
  type CovenantVersion,
  type Deployment,
  longestName,
} from '../../../backend/src/protocol/mint.js'
import { encodeOutpoint, formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { PROFILES, type Profile, TOPICS } from '../../../backend/src/protocol/profile.js'
import { CACHE } from '../http/caching.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { described, type Routes } from '../http/operation.js'
import { outpoint, text } from '../http/schemas.js'

const mintingShape = z.strictObject({
  notation: text.describe('The notation of the formulas below.'),
  characters: text.describe('The characters that names may contain.'),
  values: z.record(z.string(), text).describe('The variables of the formulas. A hex value is literal.'),
  work: text.describe('The hash that must satisfy `isGood`. It becomes the seed of both new nodes.'),
  isGood: text.describe('The condition on `work`.'),
  noncePrefix: text.optional().describe('The required prefix of the nonce. Absent if there is none.'),
  transactionVersion: z.literal(1).optional().describe('Absent if any value is valid.'),
  lockTime: z.literal(0).optional().describe('Absent if any value is valid.'),
  nodeScript: text,
  nameScript: text,
  outputs: z.array(text).describe('Outputs 0, 1 and 2, of 1 satoshi each. Any outputs may follow.'),
  unlockingScript: text.describe('The unlocking script of the input that spends the node, at any index.'),
  paths: z.strictObject({ node: text, transaction: text, submit: text }),
})

const deploymentShape = z.strictObject({
  profile: z.literal(Object.keys(PROFILES)),
  network: z.enum(['main', 'test']).describe('The network of the addresses.'),
  genesis: outpoint
    .optional()
    .describe('The root as deployed. This field and all below are absent if the host follows no tree.'),
  covenantVersion: z
    .literal(COVENANT_VERSIONS)
    .optional()
    .describe(
      'The version of the covenant rules: see docs/covenant.md. Absent on older servers, which means 1.',
    ),
  difficulty: z.int().min(1).max(64).optional().describe('The zero bits that a solution needs.'),
  nameContentType: text.optional(),
  marker: text.optional().describe('The protocol marker of name outputs.'),
  maxNameLength: z
    .int()
    .min(1)
    .max(MAX_NAME_LENGTH)
    .optional()
    .describe('The longest name that the covenant of this tree allows.'),
  tld: text.optional().describe('The top-level domain of every name, without its dot.'),
  minting: mintingShape.optional().describe('How to mint a name, complete without other documentation.'),
  sites: z
    .strictObject({ name: text, outpoint: text })
    .optional()
    .describe(
      'The hosts of sites, by name and by outpoint. `{label}` encodes the 36 bytes of the outpoint (docs/spec/http.md, Hosts). Absent if sites have no hosts of their own.',
    ),
  advertisedAs: z
    .strictObject({ identityKey: text.describe('The public key of the host, in hex.'), url: text })
    .optional()
    .describe('The key and URL under which this host advertises itself. Absent if it does not.'),
  contentTypes: z
    .array(text)
    .optional()
    .describe(
      'The content types that tm_ordinals admits, such as text/plain or image/*. Absent if it admits all.',
    ),
})

type DeploymentAnswer = z.input<typeof deploymentShape>

interface DeploymentOptions extends AboutServer {
  sitesOf: (request: Request) => DeploymentAnswer['sites']
}

/** What only our server says of itself. */
export type AboutServer = Pick<DeploymentAnswer, 'advertisedAs' | 'contentTypes'>

/**
 * `/deployment.json`: the name tree of this host, and the rules by which names are mined in it. Clients that need a certain tree
 * must not trust this, but know its genesis from elsewhere.
 */
export function deploymentRoutes(
  { profile, network, deployment, path, graph }: GatewayParts,
  { advertisedAs, contentTypes, sitesOf }: DeploymentOptions,
): Routes {
  const tree = deployment && {
    genesis: formatOutpoint(deployment.genesis),
    covenantVersion: deployment.covenantVersion,
    difficulty: deployment.difficulty,
    nameContentType: deployment.nameContentType,
    marker: readUtf8(deployment.marker),
    maxNameLength: longestName(deployment),
    ...(deployment.tld !== undefined && { tld: deployment.tld }),
  }
  let version: CovenantVersion | undefined
  const send: RequestHandler = async (request, response) => {
    await graph.opened?.()
    // The root may have been admitted since the start.
    if (deployment !== undefined) version ??= await versionOfTree(graph, deployment.genesis)
    const sites = sitesOf(request)
    response.set('Cache-Control', CACHE.revalidate).json({
      ...{ profile: profile.name, network, ...tree },
      ...(version && { covenantVersion: version }),
      ...(deployment && {
        minting: mintingRules(
          { ...deployment, covenantVersion: version ?? deployment.covenantVersion },
          { profile, path },
        ),
      }),
      ...(sites && { sites }),
      ...(advertisedAs && { advertisedAs }),
      ...(contentTypes && { contentTypes }),
    })
  }
  return routes({ deployment: send })
}

/** The rules of mints (`docs/spec/protocol.md`, Nodes, Mints) as formulas, which a test evaluates. */
function mintingRules(
  deployment: Deployment,
  { profile, path }: { profile: Profile; path: string },
): z.input<typeof mintingShape> {
  const { genesis, marker, nameContentType, tld, difficulty, covenantVersion } = deployment
  const [namesPrefix] = profile.namesPrefixes
  const [walletPrefix] = profile.walletPrefixes
  const name = tld === undefined ? 'name' : `name || ".${tld}"`
  return {
    notation:
      'x || y: bytes, one after the other. 0x6a: that byte. "ab": those characters. u32(n): 4 bytes, little-endian. number(n): a script number, little-endian, minimal. length(x): how many bytes x has. push(x): x behind its length, as script pushes data, also if x is empty or one byte. minimalPush(x): the shortest push, OP_0 if x is empty, and OP_1 to OP_16 for the bytes 0x01 to 0x10. first(n, x): the first n bytes of x. sha256, and hash256: sha256 twice.',
    characters: NAME_CHARACTERS,
    values: {
      code: 'the script of the node that is spent, up to the 0x6a of its state: read it from the end, as nodeScript says',
      genesis: toHex(encodeOutpoint(genesis)),
      marker: toHex(marker),
      contentType: toHex(utf8(nameContentType)),
      claimed:
        'the characters that were mined from a node: bit n (n & 7 of byte n >> 3) is the character with code n; no zero bytes at the end, but one more if the highest bit of the last byte is set; 00 if there are none',
      domain: 'the prefix that the node stands for; empty in the root',
      seed: 'the work of the mint that wrote the node; empty in the root as deployed, and so is the genesis there',
      character: 'one of the characters, its bit in claimed not set',
      nonce: covenantVersion === 2 ? 'noncePrefix, and any bytes' : 'any bytes',
      owner: 'the locking script of the owner',
      name: 'domain || character',
      trailing: 'the outputs after output 2, as they are in the transaction, one after the other',
      preimage:
        'the sighash preimage of this input for the type 0xc1 (ALL, FORKID, ANYONECANPAY); the script code is the whole script of the node',
    },
    work: 'hash256(seed || character || nonce)',
    isGood: `read byte by byte from its end, it starts with ${difficulty} zero bits`,
    ...(covenantVersion === 2 && {
      noncePrefix: 'first(8, sha256(domain || 0x24 || genesis || sha256(owner)))',
      transactionVersion: 1,
      lockTime: 0,
    }),
    nodeScript:
      'code || 0x6a || 0x00 || push(genesis) || push(claimed) || push(domain) || push(seed) || u32(length(0x00 || push(genesis) || push(claimed) || push(domain) || push(seed))) || 0x00',
    nameScript: `owner || 0x00 || 0x63 || push("ord") || 0x51 || push(contentType) || 0x00 || number(length(${name})) || ${name} || 0x68 || 0x6a || push(marker) || push(genesis)`,
    outputs: [
      'nodeScript of the node that is spent, with the genesis, the bit of the character set in claimed, and the work as its seed',
      'nodeScript with nothing claimed, the name as its domain, and the work as its seed',
      'nameScript',
    ],
    unlockingScript:
      'minimalPush(character) || minimalPush(nonce) || minimalPush(owner) || minimalPush(trailing) || minimalPush(preimage)',
    paths: {
      node: `GET ${path}${namesPrefix}/mine/{name}`,
      transaction: `GET ${path}${walletPrefix}/beef/{txid}/tx`,
      submit: `POST ${path}/submit, BEEF as application/octet-stream, with the header X-Topics: ${JSON.stringify(Object.values(TOPICS))}`,
    },
  }
}

const routes = described({
  tag: 'names',
  operations: {
    deployment: {
      route: 'GET /deployment.json',
      summary: 'The tree of names that this host follows, and how to mine in it',
      answer: { description: 'The tree that this host claims to follow.', json: deploymentShape },
    },
  },
})
