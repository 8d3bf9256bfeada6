import { fill } from '../../../src/cli/local-network/fill.js'
import { saidIn, useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { emptyLocalNetwork, networkOf } from '../../support/cli/local-network.js'
import { serving } from '../../support/server/connections.js'
import { useServers } from '../../support/server/test-server.js'

const servers = useServers()
const browser = useBrowser()

/** Joins the page, and says in it what has become of it once all is there. */
const PROBE = `<p id="said"></p><script>
  const audio = document.getElementById('melody')
  const once = (thing, event) => new Promise((done) => thing.addEventListener(event, done, { once: true }))
  const run = async () => {
    if (audio.readyState === 0 && !audio.error) await Promise.race([once(audio, 'loadedmetadata'), once(audio, 'error')])
    while (document.querySelectorAll('#names a').length < 6) await new Promise((again) => setTimeout(again, 20))
    const picture = document.querySelector('figure img')
    await picture.decode()
    return {
      origin: self.origin,
      title: document.title,
      width: getComputedStyle(document.body).maxWidth,
      picture: picture.naturalWidth,
      seconds: audio.duration,
      names: document.getElementById('names').textContent,
      command: document.querySelector('.command').textContent,
    }
  }
  run().catch((error) => ({ error: String(error) })).then((said) => {
    document.getElementById('said').textContent = JSON.stringify(said)
  })
</script>`

/** What a server answers, with the probe in its pages: what they are from inside, no one else can see. */
async function probed(gateway: string) {
  return await serving(async (request, response) => {
    const answer = await fetch(`${gateway}${request.url}`, { redirect: 'manual' })
    for (const [name, value] of answer.headers) {
      if (!/^(?:connection|keep-alive|content-length|transfer-encoding)$/.test(name))
        response.setHeader(name, value)
    }
    response.statusCode = answer.status
    const isPage = answer.headers.get('content-type')?.startsWith('text/html') === true
    response.end(isPage ? (await answer.text()) + PROBE : Buffer.from(await answer.arrayBuffer()))
  })
}

inBrowser('the site of a local network has its style, its picture, its melody and its names', async () => {
  const server = await emptyLocalNetwork(servers)
  const { origin } = await fill(networkOf(server))
  const site = await probed(server.url)
  const { page } = await browser.open(`${site.url}/content/${origin}:-1/`)
  expect(await saidIn(page)).toEqual({
    origin: 'null',
    title: 'home – a network of your own',
    width: '640px',
    picture: 480,
    seconds: 6,
    names: 'h, ho, hom, home, hu, hum',
    command: `npx minetree mine hey --url ${site.url}`,
  })
})
