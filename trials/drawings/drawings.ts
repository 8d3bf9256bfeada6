import { type Box, bottomOf, leftOf, rightOf, Sheet, spread, topOf } from './sheet.js'

function mint(): Sheet {
  const sheet = new Sheet(
    { width: 820, height: 330 },
    {
      title: 'A mint',
      description:
        'A mint spends the live node of a prefix and a coin for the fee. Its first three outputs are the node restated, the node of the longer prefix, and the name.',
    },
  )
  const node = sheet.box({
    ...{ x: 24, y: 60, width: 190, tone: 'node', title: 'live node of ali' },
    lines: ['claimed so far: b n s', 'anyone may spend it'],
  })
  const coin = sheet.box({ x: 24, y: 206, width: 190, title: 'a coin', lines: ['pays the fee'] })
  const transaction = sheet.box({
    ...{ x: 292, y: 92, width: 184, height: 146, tone: 'chain', title: 'the mint' },
    lines: ['character: c', 'nonce: 22 zero bits', "the owner's lock"],
  })
  sheet.arrow(rightOf(node), { x: transaction.x, y: 136 })
  sheet.arrow(rightOf(coin), { x: transaction.x, y: 200 })
  const outputs = [
    { tone: 'node', title: '0  node of ali, restated', lines: ['claimed now: b c n s'] },
    { tone: 'node', title: '1  node of alic', lines: ['new, nothing claimed yet'] },
    { tone: 'name', title: '2  the name alic', lines: ['an ordinal of its miner'] },
    { tone: 'plain', title: '3 …  change', lines: [] },
  ] as const
  const rows = spread({ from: 24, size: 56, gap: 14, count: 4 })
  for (const [index, { lines, ...output }] of outputs.entries()) {
    const box = sheet.box({
      ...output,
      lines,
      x: 560,
      y: rows[index] ?? 0,
      width: 236,
      height: 56,
    })
    sheet.arrow(rightOf(transaction), leftOf(box))
  }
  sheet.words({ x: 24, y: 312 }, [
    'The script of the node checks all of this, so nobody can bend the rules, and nobody’s permission is needed.',
  ])
  return sheet
}

function tree(): Sheet {
  const sheet = new Sheet(
    { width: 820, height: 400 },
    {
      title: 'The tree, and the life of one name',
      description:
        'Nodes of prefixes grow from the genesis to longer prefixes. Each mint also makes a name, which goes its own way: mined, bound to a key, given a site, given away.',
    },
  )
  sheet.words({ x: 24, y: 34 }, ['Nodes: where mining goes on'], { kind: 'head' })
  sheet.words({ x: 552, y: 34 }, ['The life of the name ali'], { kind: 'head' })
  const small = { width: 82, height: 38, tone: 'node' } as const
  const root = sheet.box({ ...small, x: 24, y: 184, width: 90, title: 'genesis' })
  const columns = spread({ from: 152, size: 82, gap: 34, count: 3 })
  const [one = 0, two = 0, three = 0] = columns
  const a = sheet.box({ ...small, x: one, y: 110, title: 'a' })
  const h = sheet.box({ ...small, x: one, y: 268, title: 'h' })
  const al = sheet.box({ ...small, x: two, y: 70, title: 'al' })
  const ab = sheet.box({ ...small, x: two, y: 150, title: 'ab' })
  const ho = sheet.box({ ...small, x: two, y: 228, title: 'ho' })
  const hu = sheet.box({ ...small, x: two, y: 308, title: 'hu' })
  const ali = sheet.box({ ...small, x: three, y: 70, title: 'ali' })
  const hom = sheet.box({ ...small, x: three, y: 228, title: 'hom' })
  const links: [Box, Box][] = [
    ...[a, h].map((box): [Box, Box] => [root, box]),
    ...[al, ab].map((box): [Box, Box] => [a, box]),
    ...[ho, hu].map((box): [Box, Box] => [h, box]),
    [al, ali],
    [ho, hom],
  ]
  for (const [from, to] of links) sheet.arrow(rightOf(from), leftOf(to))
  sheet.words({ x: 24, y: 376 }, ['Every step to the right is one mint: one character, one proof of work.'])
  const rows = spread({ from: 56, size: 52, gap: 30, count: 4 })
  const life = [
    { tone: 'name', title: 'mined', lines: ['origin: output 2 of the mint'] },
    { tone: 'name', title: 'bound to a key', lines: ['says who its owner is'] },
    { tone: 'content', title: 'given a site', lines: ['inscribed again, with a directory'] },
    { tone: 'name', title: 'given away', lines: ['the site stays, the binding goes'] },
  ] as const
  const boxes = life.map(({ lines, ...step }, index) =>
    sheet.box({ ...step, lines, x: 552, y: rows[index] ?? 0, width: 244, height: 52 }),
  )
  for (const [index, box] of boxes.slice(1).entries()) sheet.arrow(bottomOf(boxes[index] ?? box), topOf(box))
  const [first] = boxes
  if (first) sheet.arrow(rightOf(ali), leftOf(first), { isDashed: true })
  sheet.words({ x: 552, y: 376 }, ['Only its lineage makes it genuine.'])
  return sheet
}

function ordinal(): Sheet {
  const sheet = new Sheet(
    { width: 820, height: 272 },
    {
      title: 'Origin, step, tip',
      description:
        'An ordinal is followed from output to output. Step 0 is its origin, minus 1 its tip. A step that inscribes nothing shows what was inscribed before.',
    },
  )
  const columns = spread({ from: 24, size: 170, gap: 30, count: 4 })
  const steps = [
    {
      title: 'origin',
      lines: ['inscribes page.html'],
      tone: 'content',
      below: ['step 0', 'pointers :0 and :-2'],
    },
    { title: 'step 1', lines: ['moved to Bob'], tone: 'name', below: ['shows page.html', 'pointer :1'] },
    {
      title: 'step 2',
      lines: ['inscribes new.html'],
      tone: 'content',
      below: ['shows new.html', 'pointer :2'],
    },
    {
      title: 'tip',
      lines: ['moved to Carol'],
      tone: 'name',
      below: ['shows new.html', 'pointers :3 and :-1'],
    },
  ] as const
  const boxes = steps.map(({ title, lines, tone, below }, index) => {
    const box = sheet.box({
      title,
      lines,
      tone,
      x: columns[index] ?? 0,
      y: 76,
      width: 170,
      height: 64,
    })
    sheet.words({ x: box.x + 85, y: 168 }, below, { anchor: 'middle' })
    return box
  })
  for (const [index, box] of boxes.slice(1).entries()) sheet.arrow(rightOf(boxes[index] ?? box), leftOf(box))
  sheet.words({ x: 24, y: 44 }, ['One satoshi, alone in an output, spent into the next'], { kind: 'head' })
  sheet.words({ x: 24, y: 236 }, [
    'An address is an outpoint of the ordinal and a step: /content/<origin>:-1 is what it shows now.',
    'A mined step never changes, so it is cached for a year. The tip is asked for each time.',
  ])
  return sheet
}

function path(): Sheet {
  const sheet = new Sheet(
    { width: 820, height: 300 },
    {
      title: 'A path through directories',
      description:
        'The host of a name leads to the tip of its ordinal, which holds a directory. Each segment of the path is an entry that points at an output.',
    },
  )
  sheet.words({ x: 24, y: 40 }, ['alice.localhost:8080/docs/guide.html'], { kind: 'head' })
  const columns = spread({ from: 24, size: 170, gap: 30, count: 4 })
  const [one = 0, two = 0, three = 0, four = 0] = columns
  const box = { width: 170, y: 66, height: 100 }
  const name = sheet.box({
    ...box,
    x: one,
    tone: 'name',
    title: 'alice',
    lines: ['its origin, then', 'its tip'],
  })
  const root = sheet.box({
    ...{ ...box, x: two, tone: 'content', title: 'directory' },
    lines: ['index.html → _1', 'style.css → _2', 'docs → _3'],
  })
  const docs = sheet.box({
    ...{ ...box, x: three, tone: 'content', title: 'directory docs' },
    lines: ['index.html → _4', 'guide.html → _5'],
  })
  const file = sheet.box({
    ...{ ...box, x: four, tone: 'content', title: 'guide.html' },
    lines: ['text/html', 'read out of output 5'],
  })
  sheet.arrow(rightOf(name), leftOf(root))
  sheet.arrow(rightOf(root), leftOf(docs))
  sheet.arrow(rightOf(docs), leftOf(file))
  const old = sheet.box({
    ...{ x: three, y: 222, width: 170, height: 60, title: 'photo.jpg' },
    lines: ['of an earlier publish'],
  })
  sheet.arrow(bottomOf(docs), topOf(old), { label: '<txid>_7', isDashed: true })
  sheet.words({ x: 24, y: 214 }, [
    '_3 is output 3 of the same transaction.',
    'A whole outpoint points anywhere: an update',
    'names files that are inscribed already and',
    'pays only for those that are new.',
  ])
  return sheet
}

function checks(): Sheet {
  const sheet = new Sheet(
    { width: 820, height: 322 },
    {
      title: 'Who checks what',
      description:
        'Miners check scripts and money. A node checks proofs against headers and lineage. Your program checks both again, from the genesis and headers alone; only that nothing spent a tip cannot be proven.',
    },
  )
  const columns = spread({ from: 24, size: 210, gap: 71, count: 3 })
  const parts = [
    {
      tone: 'chain',
      title: 'the network',
      lines: ['runs every script', 'counts every satoshi', 'one spender for a coin', 'proof of work on top'],
    },
    {
      tone: 'node',
      title: 'a minetree node',
      lines: [
        'scripts before they are mined',
        'paths against block headers',
        'lineage to the genesis',
        'which of two spenders counts',
      ],
    },
    {
      tone: 'name',
      title: 'your program',
      lines: [
        'every mint from the genesis',
        'every step to the tip',
        'paths against block headers',
        'bytes against their hash',
      ],
    },
  ] as const
  const boxes = parts.map(({ lines, ...part }, index) =>
    sheet.box({ ...part, lines, x: columns[index] ?? 0, y: 62, width: 210, height: 128 }),
  )
  sheet.words({ x: 24, y: 38 }, ['Each checks for itself what it can'], { kind: 'head' })
  for (const [index, box] of boxes.slice(1).entries()) sheet.arrow(rightOf(boxes[index] ?? box), leftOf(box))
  sheet.words({ x: 269.5, y: 114 }, ['proofs'], { anchor: 'middle' })
  sheet.words({ x: 550.5, y: 114 }, ['evidence'], { anchor: 'middle' })
  const [network, , program] = boxes
  if (network && program) {
    const corner = { x: bottomOf(network).x, y: 222 }
    sheet.line(bottomOf(network), corner)
    sheet.arrow(corner, bottomOf(program), { isDashed: true })
    sheet.words({ x: 410, y: 214 }, ['headers, from anywhere'], { anchor: 'middle' })
  }
  sheet.words({ x: 24, y: 266 }, [
    'What nobody can prove: that a tip has not been spent since, and that a name is not taken.',
    'For these, ask several nodes that do not share an operator, and compare.',
    'The genesis is the one thing that you must know from elsewhere: it says which tree you mean.',
  ])
  return sheet
}

function following(): Sheet {
  const sheet = new Sheet(
    { width: 820, height: 308 },
    {
      title: 'Catching up',
      description:
        'A node asks chain sources who spent each live node, verifies the mint that they show, and asks about the nodes that it made. Once nothing is left to ask about, absence is known.',
    },
  )
  const box = { width: 176, height: 64 }
  const live = sheet.box({
    ...box,
    x: 24,
    y: 70,
    tone: 'node',
    title: 'a live node',
    lines: ['at first the genesis'],
  })
  const ask = sheet.box({ ...box, x: 322, y: 70, title: 'chain sources', lines: ['who has spent it?'] })
  const verify = sheet.box({
    ...box,
    x: 620,
    y: 70,
    tone: 'chain',
    title: 'verify',
    lines: ['proof, headers, lineage'],
  })
  sheet.arrow(rightOf(live), leftOf(ask), { label: 'ask' })
  sheet.arrow(rightOf(ask), leftOf(verify), { label: 'mint, proof' })
  const admitted = sheet.box({
    ...box,
    x: 322,
    y: 170,
    tone: 'name',
    title: 'admitted',
    lines: ['two nodes and a name'],
  })
  sheet.arrow(bottomOf(verify), rightOf(admitted))
  sheet.arrow(leftOf(admitted), bottomOf(live), { isDashed: true })
  sheet.words({ x: 128, y: 222 }, ['ask about these, too'])
  sheet.words({ x: 24, y: 42 }, ['Until no live node is left to ask about'], { kind: 'head' })
  sheet.words({ x: 24, y: 272 }, [
    'Meanwhile a name that is not found is 503 NOT_CAUGHT_UP, as it may have been mined. Afterwards it is 404.',
    'From then on each new block starts a new sweep. Catching up takes about 45 minutes on the live tree.',
  ])
  return sheet
}

function hosts(): Sheet {
  const sheet = new Sheet(
    { width: 820, height: 350 },
    {
      title: 'Hosts, DNS and proxy',
      description:
        'A browser finds the proxy by wildcard DNS; the proxy ends TLS and passes the host on; minetree reads the host: a name, an outpoint, a custom domain, or itself.',
    },
  )
  const box = { width: 158, height: 86, y: 120 }
  const browser = sheet.box({ ...box, x: 24, title: 'browser', lines: ['alice.names.example'] })
  const proxy = sheet.box({
    ...{ ...box, x: 262, title: 'proxy' },
    lines: ['wildcard certificates', 'passes Host on'],
  })
  const dns = sheet.box({ width: 158, height: 56, x: 262, y: 24, title: 'DNS', lines: ['*.names.example'] })
  sheet.arrow(topOf(browser), leftOf(dns), { isDashed: true })
  sheet.arrow(rightOf(browser), leftOf(proxy), { label: 'https' })
  const rows = spread({ from: 24, size: 58, gap: 14, count: 4 })
  const kinds = [
    { title: '<name>.names.example', lines: ['the name at its tip'], tone: 'name' },
    { title: '<label>.c.names.example', lines: ['an outpoint, for ever'], tone: 'content' },
    { title: 'shop.example', lines: ['what TXT _ordfs.shop.example says'], tone: 'content' },
    { title: 'node.example', lines: ['the service: pages and routes'], tone: 'plain' },
  ] as const
  sheet.words({ x: 510, y: 332 }, ['Each host is an origin of its own.'])
  for (const [index, { lines, ...kind }] of kinds.entries()) {
    const row = sheet.box({ ...kind, lines, x: 510, y: rows[index] ?? 0, width: 286, height: 58 })
    sheet.arrow(rightOf(proxy), leftOf(row))
  }
  sheet.words({ x: 24, y: 252 }, [
    'On your own machine there is nothing to set up:',
    'browsers find everything below localhost there,',
    'so http://alice.localhost:8080 works at once.',
  ])
  return sheet
}

function wallet(): Sheet {
  const sheet = new Sheet(
    { width: 820, height: 430 },
    {
      title: "The wallet's part of a mint",
      description:
        'For each character the wallet is asked four times: for a key, for coins, for its signature, and to send. minetree searches, unlocks the node, checks and stores in between.',
    },
  )
  const heads = [
    { x: 130, title: 'wallet' },
    { x: 440, title: 'minetree mine' },
    { x: 716, title: 'node' },
  ]
  for (const { x, title } of heads) {
    const head = sheet.box({ x: x - 80, y: 20, width: 160, height: 36, title })
    sheet.line(bottomOf(head), { x, y: 414 })
  }
  const calls = [
    { y: 118, from: 440, to: 130, label: '1  getPublicKey: who will own it?' },
    { y: 206, from: 440, to: 130, label: '2  createAction: add coins, sign nothing' },
    { y: 284, from: 440, to: 130, label: '3  signAction: sign your coins' },
    { y: 362, from: 440, to: 130, label: '4  createAction, sendWith: send it' },
    { y: 90, from: 440, to: 716, label: 'live node, and its proof' },
    { y: 394, from: 440, to: 716, label: 'submit' },
  ]
  for (const { y, from, to, label } of calls) sheet.arrow({ x: from, y }, { x: to, y }, { label })
  const own = { x: 330, width: 220, height: 34 }
  sheet.box({ ...own, y: 134, tone: 'node', lines: ['search: about 4 million hashes'] })
  sheet.box({ ...own, y: 222, tone: 'node', lines: ['check draft, unlock the node'] })
  sheet.box({ ...own, y: 300, tone: 'node', lines: ['check all, store in journal'] })
  return sheet
}

/** Every drawing of the documentation, by the name of its file in `docs/drawings`. */
export const DRAWINGS: Record<string, () => Sheet> = {
  'mint.svg': mint,
  'tree.svg': tree,
  'ordinal.svg': ordinal,
  'path.svg': path,
  'checks.svg': checks,
  'following.svg': following,
  'hosts.svg': hosts,
  'wallet.svg': wallet,
}
