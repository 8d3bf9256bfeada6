// What only a script can say: which names are mined by now, and where this server listens. Below /content/, content runs in an
// origin of its own, and asks the service as any other site does. On the host of a name the service is elsewhere: at the host
// below which that name has its own.

const { name } = document.currentScript.dataset
const below = location.host.startsWith(`${name}.`) ? location.host.slice(name.length + 1) : undefined
const service =
  location.pathname.startsWith('/content/') || below === undefined ? '' : `${location.protocol}//${below}`

for (const element of document.querySelectorAll('[href^="/"], [src^="/"]')) {
  const attribute = element.hasAttribute('src') ? 'src' : 'href'
  element.setAttribute(attribute, service + element.getAttribute(attribute))
}

for (const command of document.querySelectorAll('.command'))
  command.append(` --url ${service || location.origin}`)

const link = (name) => {
  const a = document.createElement('a')
  a.href = `${service}/svc/names/${name}`
  a.textContent = name
  return a
}

fetch(`${service}/svc/names`)
  .then((response) => response.json())
  .then(({ names, next }) => {
    const links = names.flatMap(({ name }, at) => (at === 0 ? [link(name)] : [', ', link(name)]))
    const rest = next === undefined ? [] : [' and more']
    document.getElementById('names')?.replaceChildren(...links, ...rest)
  })
