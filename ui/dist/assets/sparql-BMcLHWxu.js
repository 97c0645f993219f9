import{s as e}from"./index-CIEr7njr.js";var t=(t,n={},r)=>e(`POST`,`/api/v1/sparql`,{body:{query:t,...n},signal:r}),n=e=>e?.i??e?.v??(e?.d?`_:${e.d}`:``);function r(e){let t=e.variables??[];return(e.bindings??[]).map(({values:e})=>{let r={};return t.forEach((t,i)=>{let a=e[i];a&&(r[t]=n(a))}),r})}var i=e=>/[\s<>"{}|\\^`]/.test(e)?null:`<${e}>`,a=e=>JSON.stringify(e).replace(/\u007f/g,`\\u007F`),o=`PREFIX tg: <https://trustgraph.ai/ns/>
PREFIX prov: <http://www.w3.org/ns/prov#>
PREFIX trellis: <urn:trellis:ns:>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
`;export{r as a,t as i,a as n,n as o,o as r,i as t};