import type { VNode } from 'preact'
import { unlessBlocked } from '../../backend/src/graph/blocklist.js'
import { dependency } from '../../backend/src/graph/dependencies.js'
import { isName } from '../../backend/src/protocol/mine-node.js'
import { DEFAULT_FEE_RATE } from '../../backend/src/protocol/mint-cost.js'
import { type NameOffer, nameOffers } from '../../backend/src/read/name-offer.js'
import { Crumbs } from './name.js'
import { renderPage } from './page.js'
import { Badge, Card, Facts, Head, NameList } from './parts.js'
import type { Explorer, MadePage } from './reads.js'
import { byteSize, count, counted, lasting } from './text.js'

/** The assumed speed of a laptop in hashes a second, until a script has measured this machine. */
const ASSUMED_RATE = 5_000_000
/** How many similar free names, and how many prefixes on the way to the name, a page lists. */
const MOST_LIKE_IT = 6
const MOST_ON_THE_WAY = 12

type Free = Extract<NameOffer, { kind: 'free' }>

/**
 * How to mine a name that nobody has; undefined if it cannot be mined in this tree. The caller has checked that it is not
 * claimed. Takes at most some fifty indexed reads.
 */
export function freeNamePage(explorer: Explorer, name: string): MadePage | undefined {
  const { store, site, tree } = explorer
  const offerOf = nameOffers(store)
  const offer = offerOf(name, tree)
  if (offer.kind !== 'free' || tree === undefined) return undefined
  const { domain, mints } = offer
  const short = name.length > 24 ? 'it' : name
  const onTheWay = prefixesBetween(domain, name)
  const taken = new Set(store.names.claimed(namesLike(name)).map((each) => each.name))
  const likeIt = namesLike(name)
    .filter((each) => !taken.has(each))
    .flatMap((each) => {
      const other = unlessBlocked(() => offerOf(each, tree))
      return other?.kind === 'free' ? [{ name: each, mints: other.mints }] : []
    })
    .sort((a, b) => a.mints - b.mints)
    .slice(0, MOST_LIKE_IT)
  const html = renderPage({
    site,
    title: name.length > 40 ? `${name.slice(0, 40)}…` : name,
    description: `The name ${name} is free: what it takes to mine it.`,
    section: 'names',
    path: `/name/${name}`,
    // There is such a page for every possible name.
    isUnlisted: true,
    children: (
      <>
        <Crumbs name={name} mined={domain.length} />
        <Head
          title={name}
          subject={name}
          badges={<Badge kind="good">Free</Badge>}
          actions={
            <a class="btn" href={`/mine?name=${name}`}>
              Mine {short}
            </a>
          }
        />
        <div class="split">
          <div class="stack">
            <Card title="What it takes">
              <Letters name={name} mined={domain.length} />
              <Figures offer={offer} difficulty={tree.difficulty} />
              <p class="hint">
                Whoever mines it first owns it. The figures are averages, based on the names mined so far.
              </p>
            </Card>
            {likeIt.length > 0 && (
              <Card title="Also free">
                <NameList names={likeIt.map(({ name, mints }) => ({ name, more: counted(mints, 'mint') }))} />
              </Card>
            )}
          </div>
          <div class="stack">
            {onTheWay.length > 0 && (
              <Card title="Yours with it">
                <p class="hint">
                  {counted(onTheWay.length, 'shorter name is', 'shorter names are')} mined on the way.
                </p>
                <NameList names={onTheWay.slice(-MOST_ON_THE_WAY).map((each) => ({ name: each }))} />
                {onTheWay.length > MOST_ON_THE_WAY && (
                  <p class="hint">And {counted(onTheWay.length - MOST_ON_THE_WAY, 'shorter one')}.</p>
                )}
              </Card>
            )}
            <Card title="In the tree">
              <p>
                {domain === '' ? 'No prefix of it is mined: it begins at ' : 'It continues from '}
                <a href={`/tree${domain === '' ? '' : `?prefix=${domain}`}`}>
                  {domain === '' ? 'the root' : <b class="name">{domain}</b>}
                </a>
                {`, ${counted(mints, 'character')} away.`}
              </p>
            </Card>
          </div>
        </div>
      </>
    ),
  })
  return { html, dependsOn: [dependency.names] }
}

function Figures({ offer, difficulty }: { offer: Free; difficulty: number }): VNode {
  const { domain, mints, hashes, bytes, satoshis } = offer
  return (
    <Facts
      facts={{
        'Free from': (
          <span>
            character {domain.length + 1} on
            {domain !== '' && (
              <>
                , after <b class="name">{domain}</b>
              </>
            )}
          </span>
        ),
        Mints: `${counted(mints, 'mint')}, one for each missing character`,
        Work: `${counted(hashes, 'hash', 'hashes')}, ${difficulty} zero bits for each mint`,
        Time: (
          <span data-hashes={hashes}>
            {lasting(hashes / ASSUMED_RATE)} at {count(ASSUMED_RATE)} hashes a second, as a laptop does
          </span>
        ),
        Fee:
          satoshis !== undefined && bytes !== undefined
            ? `about ${counted(satoshis, 'satoshi')}: ${byteSize(bytes)} at ${DEFAULT_FEE_RATE} satoshis for 1,000 bytes`
            : 'depends on the size of its node, which is not known here',
      }}
    />
  )
}

/** The characters of a name, marked as mined or missing; of a long name, only the last ones. */
function Letters({ name, mined }: { name: string; mined: number }): VNode {
  const from = Math.max(0, name.length - SHOWN_LETTERS)
  return (
    <p class="keys mono cluster" aria-hidden="true">
      {from > 0 && <span data-state={from <= mined ? 'mined' : undefined}>…</span>}
      {Array.from(name.slice(from), (character, at) => (
        <span key={at} data-state={from + at < mined ? 'mined' : undefined}>
          {character}
        </span>
      ))}
    </p>
  )
}

const SHOWN_LETTERS = 24

/** The prefixes between the two names, which are not included. */
function prefixesBetween(domain: string, name: string): string[] {
  const lengths = Array.from({ length: Math.max(0, name.length - domain.length - 1) }, (_, at) => at + 1)
  return lengths.map((more) => name.slice(0, domain.length + more))
}

/** Similar names that are no prefixes of it. */
function namesLike(name: string): string[] {
  const bare = name.replaceAll('-', '')
  const words = [
    ...[bare, `${bare}s`, `my-${bare}`, `the-${bare}`, `get-${bare}`],
    ...[`${name}-app`, `${name}-hq`, `${name}-1`, `${name}x`],
    ...[bare.slice(0, 1) + bare.slice(1).replace(/[aeiou]/g, ''), bare.slice(0, 3)],
  ]
  return [...new Set(words)].filter((each) => !name.startsWith(each) && isName(each))
}
